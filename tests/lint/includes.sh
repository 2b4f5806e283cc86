#!/bin/bash
# The include table: which folder may include what. Prints every offending line and fails.
# Usage: tests/lint/includes.sh [ROOT]
#
# Also: quoted includes start at the root and exist; no file shadows a system header; a private
# header is used by a test only in its own module's unit tests; libraries neither print nor exit;
# app holds no HDF5 handle.
set -u
cd "${1:-$(dirname "$0")/../..}" || exit 2
found=$(mktemp)
trap 'rm -f "$found"' EXIT

# Headers of libc, libm and pthread.
libc='<(assert|complex|ctype|errno|fcntl|fenv|float|fnmatch|getopt|inttypes|libgen|limits|locale'
libc+='|math|pthread|sched|setjmp|signal|stdarg|stdatomic|stdbool|stddef|stdint|stdio|stdlib'
libc+='|string|strings|time|unistd|sys/(file|mman|mount|resource|stat|statvfs|time|types|wait))\.h>'
intrinsics='<(immintrin|emmintrin|arm_neon)\.h>'
# What a backend sees of the library: the public header and the table of operations.
contract='"kernels/(gb10|backend)\.h"'
core='"kernels/core/[a-z0-9_]+\.h"'

offend() { # reason < lines "file:number:text"
    sed "s|\$|    <- $1|" >>"$found"
}

# allow WHAT FILES... -- PATTERN...: includes of these files that match no pattern
allow() {
    local what=$1 files=() patterns=
    shift
    while [ "$1" != -- ]; do
        [ -f "$1" ] && files+=("$1")
        shift
    done
    shift
    patterns=$(printf '|%s' "$@")
    [ ${#files[@]} -gt 0 ] || return 0
    grep -nE '^[[:space:]]*#[[:space:]]*include' "${files[@]}" /dev/null |
        grep -vE ":[[:space:]]*#[[:space:]]*include[[:space:]]+(${patterns#|})" |
        offend "not allowed in $what"
}

shopt -s nullglob
allow kernels/core kernels/core/*.[ch] -- "$libc" "$core"
allow kernels/check kernels/check/*.[ch] -- "$libc" "$core" "$contract" '"kernels/check/'
allow 'kernels/cpu reference' kernels/cpu/ref*.[ch] -- "$libc" "$core" "$contract" \
    '"kernels/cpu/ref'
allow 'kernels/cpu fast' kernels/cpu/fast*.[ch] -- "$libc" "$intrinsics" '<cblas\.h>' "$core" \
    "$contract" '"kernels/cpu/fast'
allow kernels/cuda kernels/cuda/*.[ch] kernels/cuda/*.cu -- "$libc" '<cuda[a-z_]*\.h>' "$core" \
    "$contract" '"kernels/cuda/'
allow kernels/lapack kernels/lapack/*.[ch] -- "$libc" '<cblas\.h>' "$core" "$contract" \
    '"kernels/lapack/'
allow kernels/tuning kernels/tuning/*.[ch] -- "$libc" "$core" '"kernels/tuning/'
allow kernels kernels/*.[ch] -- "$libc" '"kernels/'
machine='<(dirent|nmmintrin|arm_acle|sys/auxv)\.h>' # journals by name; the CRC instruction
allow io io/*.[ch] -- "$libc" "$machine" "$core" '<hdf5\.h>' '"io/'
allow mpi mpi/*.[ch] -- "$libc" "$core" '<mpi\.h>' '"mpi/'
system='<(dirent|dlfcn|poll)\.h>' # fugu bench: peers as processes, OpenBLAS when it is there
allow app app/*.[ch] -- "$libc" "$system" "$core" '"kernels/gb10\.h"' \
    '"io/(io|crc|fault|journal)\.h"' '"mpi/dist\.h"' '"app/'

for f in kernels/*/*.[ch] kernels/*/*.cu; do
    case $f in
    kernels/core/* | kernels/check/* | kernels/cuda/* | kernels/lapack/* | kernels/tuning/*) ;;
    kernels/cpu/ref* | kernels/cpu/fast*) ;;
    *) echo "$f:1:" ;;
    esac
done | offend 'no row of the include table is about this file'

# The public header needs nothing that is not installed with it.
allow 'the public header' kernels/gb10.h -- "$libc" '"kernels/core/(status|types)\.h"'

# Private headers in tests: only in tests/unit/test_MODULE_*.c, tests/kernels and tests/simt
# (kernels) and tests/mpi (mpi, and app for the ScaLAPACK comparison).
public='"(kernels/gb10\.h|kernels/core/|io/(io|crc|fault|journal)\.h|mpi/dist\.h|tests/)'
for module in app io mpi kernels; do
    own=(tests/unit/test_"${module}"_*.c)
    case $module in
    kernels) own+=(tests/kernels/*.c tests/simt/*.[ch] tests/bench/cuda_report.c) ;;
    mpi | app) own+=(tests/mpi/*.c) ;;
    esac
    for f in tests/*/*.[ch]; do
        [[ " ${own[*]} " == *" $f "* ]] && continue
        grep -nE "^#include \"$module/" "$f" /dev/null | grep -vE "#include $public"
    done | offend "private header of $module outside its unit tests"
done

# Quoted includes are paths from the root.
for f in app/*.[ch] io/*.[ch] mpi/*.[ch] kernels/*.[ch] kernels/*/*.[ch] tests/*/*.[ch]; do
    while IFS= read -r line; do
        path=${line#*\"}
        path=${path%%\"*}
        [[ $path == */* && -f $path ]] || echo "$f:$line"
    done < <(grep -nE '^[[:space:]]*#[[:space:]]*include[[:space:]]*"' "$f")
done | offend 'no such path from the root'
for f in mpi/mpi.h io/hdf5.h; do
    [ ! -e "$f" ] || echo "$f:1:" | offend 'shadows a system header'
done

# Libraries neither print nor exit (dist_abort of mpi ends a run); app leaves HDF5 to io.
code=(io/*.[ch] kernels/*.[ch] kernels/*/*.[ch])
calls='(^|[^_[:alnum:]"])(printf|puts|putchar|perror'
{
    grep -nE "$calls|exit|_exit|abort) *\(" "${code[@]}" /dev/null
    grep -nE "$calls) *\(" mpi/*.[ch] /dev/null
    grep -nE 'stdout|stderr' "${code[@]}" mpi/*.[ch] /dev/null
} | grep -vE ':[[:space:]]*(/?\*|//)' | offend 'libraries neither print nor exit'
grep -nE '(^|[^_[:alnum:]])(hid_t|H5[A-Z][a-z_0-9]*) *[(a-z]' app/*.[ch] /dev/null |
    offend 'app holds no HDF5 handle'

[ -s "$found" ] || exit 0
sort -u "$found"
echo "includes.sh: $(sort -u "$found" | wc -l) lines break the include table" >&2
exit 1
