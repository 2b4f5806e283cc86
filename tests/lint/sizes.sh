#!/bin/bash
# Sizes of files, functions and lines. Prints a line per folder (files, lines, functions, the 90th
# percentile of their length, the longest) and every limit that is passed; fails on those.
# Limits: file 700 lines, function 100 (kernels 150), line 100 columns; .cu files 800 lines.
# Usage: tests/lint/sizes.sh [ROOT]
set -u
cd "${1:-$(dirname "$0")/../..}" || exit 2
command -v ctags >/dev/null || {
    echo "sizes.sh: ctags is missing; install universal-ctags" >&2
    exit 1
}
shopt -s nullglob
sources=(app/*.[ch] io/*.[ch] mpi/*.[ch] kernels/*.[ch] kernels/*/*.{c,h,cu} tests/*/*.{c,h,cpp,cu})
scripts=(jobs/*.sh jobs/*.py tests/*.sh tests/*/*.sh tests/*/*.py)
list=$(mktemp)
trap 'rm -f "$list"' EXIT

wc -l "${sources[@]}" | awk '$2 != "total" { print "file", $2, $1 }' >"$list"
# Function-like macros in front of a body make ctags lose its place: attributes are told to it.
ctags -x --_xformat='func %F %n %e %N' --languages=C,C++ --langmap=C:.c.h,C++:.cu.cpp --kinds-C=f \
    --kinds-C++=f -I UNROLL -I INLINE+ "${sources[@]}" |
    awk '$4 ~ /^[0-9]+$/ { print "func", $2, $4 - $3 + 1, $3, $5 }' >>"$list"
LC_ALL=C.UTF-8 grep -nE '.{101,}' "${sources[@]}" "${scripts[@]}" /dev/null |
    awk -F: '{ print "line", $1, $2 }' >>"$list"

sort -k1,1 -k3,3n "$list" | awk '
function folder(path,  n, part) {
    n = split(path, part, "/")
    return n > 2 ? part[1] "/" part[2] : part[1]
}
function complain(text) { print "TOO LONG " text; bad++ }
$1 == "file" {
    f = folder($2); files[f]++; lines[f] += $3
    if ($3 > ($2 ~ /\.cu$/ ? 800 : 700)) complain($2 ": " $3 " lines")
}
$1 == "func" {
    f = folder($2); sorted[f, ++funcs[f]] = $3
    if ($3 > ($2 ~ /^kernels/ ? 150 : 100)) complain($2 ":" $4 ": " $5 " has " $3 " lines")
}
$1 == "line" { complain($2 ":" $3 ": more than 100 columns") }
END {
    printf "%-16s %6s %7s %10s %9s %8s\n", "folder", "files", "lines", "functions", "90 % have",
        "longest"
    for (f in files) {
        n = funcs[f]; at = int(0.9 * n + 0.999)
        printf "%-16s %6d %7d %10d %9s %8s\n", f, files[f], lines[f], n,
            n ? "<= " sorted[f, at] : "-", n ? sorted[f, n] : "-" | "sort"
    }
    close("sort")
    exit bad > 0
}'
