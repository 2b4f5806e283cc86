#!/bin/bash
# clang-tidy (checks in .clang-tidy) over app, io, mpi and kernels, one file per core at a time.
# Prints what it finds and fails on anything.
# Usage: tests/lint/tidy.sh [compiler flags for HDF5 and MPI]
set -u
cd "$(dirname "$0")/../.." || exit 2
# clang 14 lacks GCC's __builtin_shuffle; only its type matters here.
flags=(-std=c11 -D_GNU_SOURCE -I. -DWITH_SCALAPACK=1 -DGB10_ISA=baseline '-DFUGU_GIT="lint"'
    '-D__builtin_shuffle(a,...)=((void)(__VA_ARGS__), (a))' "$@")
shopt -s nullglob
files=(app/*.c io/*.c mpi/*.c kernels/*.c kernels/*/*.c)
[ ${#files[@]} -gt 0 ] || exit 1

# Long files first, so that no core waits at the end; fast_isa.c holds a body four times.
# clang-tidy's own count of suppressed warnings goes to stderr and is shown only on failure.
# shellcheck disable=SC2016 # the inner shell expands it
wc -l "${files[@]}" | awk '$2 != "total" { print ($2 ~ /_isa/ ? 99999 : $1), $2 }' | sort -rn |
    cut -d' ' -f2 | xargs -P "$(nproc)" -I '{}' bash -c '
        out=$(clang-tidy --quiet "$0" -- "$@" 2>&1) || { printf "%s\n" "$out"; exit 1; }
    ' '{}' "${flags[@]}"
