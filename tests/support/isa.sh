#!/bin/bash
# The kernel tests on one instruction set: baseline or avx512 where the machine has it, or twice:
# the avx512 kernels in a build of their own whose vectors are pairs of AVX2's. Exit 77 (skipped,
# with the reason) where this machine cannot. Usage: tests/support/isa.sh BUILD NAME
set -u
build=$(realpath "$1")
name=$2
cd "$(dirname "$0")/../.." || exit 1
export FUGU_TEST_SHORT=1 FUGU_ISA=$name

skip() {
    echo "$1"
    exit 77
}

[ "$(uname -m)" = x86_64 ] || skip "this machine has one instruction set only"
case $name in
avx512) grep -qw avx512vl /proc/cpuinfo || skip "this machine has no AVX-512" ;;
twice)
    grep -qw avx2 /proc/cpuinfo || skip "this machine has no AVX2"
    FUGU_ISA=avx512
    build=$build/twice
    make -s -j"$(nproc)" BUILD="$build" WITH_CUDA=0 TWICE=1 \
        ISAS="baseline avx2 avx512" plain-build || exit 1
    ;;
esac
dir=$build
[ -d "$build/plain/tests/kernels" ] && [ "$name" = twice ] && dir=$build/plain
code=0
for t in geqrf policies threads layouts; do
    "$dir/tests/kernels/test_$t" || code=1
done
exit $code
