#!/bin/bash
# Cross-compiles the kernel and io tests for arm64 and runs them under qemu-user. Debian's arm64
# packages are unpacked into BUILD/sysroot by an apt with its own state: the machine's packages are
# not touched. Exit 77 (skipped, with the reason) where the tools or the packages are missing.
# Usage: tests/support/arm64.sh BUILD
set -u
build=$(realpath "$1")
cd "$(dirname "$0")/../.." || exit 1
sysroot=$build/sysroot
triplet=aarch64-linux-gnu

skip() {
    echo "$1"
    exit 77
}

[ "$(uname -m)" != aarch64 ] || skip "this machine is arm64: the native tests cover it"
command -v $triplet-gcc >/dev/null || skip "$triplet-gcc is not installed (jobs/deps.sh arm64)"
command -v qemu-aarch64 >/dev/null || skip "qemu-aarch64 is not installed (jobs/deps.sh arm64)"
command -v apt-get >/dev/null || skip "there is no apt to fetch arm64 packages with"

if [ ! -e "$sysroot/done" ]; then
    rm -rf "$sysroot"
    mkdir -p "$sysroot/apt/lists/partial" "$sysroot/apt/cache/archives/partial"
    : >"$sysroot/apt/status"
    own="-o APT::Architecture=arm64 -o APT::Architectures=arm64 -o Debug::NoLocking=true
        -o Dir::State::status=$sysroot/apt/status -o Dir::State::lists=$sysroot/apt/lists
        -o Dir::Cache=$sysroot/apt/cache -o APT::Sandbox::User=$(id -un)"
    # shellcheck disable=SC2086
    { apt-get $own update && apt-get $own install -y --download-only --no-install-recommends \
        libc6-dev libhdf5-dev libopenblas-dev liblapacke-dev; } >"$sysroot/apt/log" 2>&1 ||
        skip "arm64 packages could not be fetched: $(grep -m 1 '^E:' "$sysroot/apt/log")"
    for p in "$sysroot"/apt/cache/archives/*.deb; do
        dpkg -x "$p" "$sysroot" || exit 1
    done
    rm -rf "$sysroot/apt/cache"
    touch "$sysroot/done"
fi

lib=$sysroot/usr/lib/$triplet
paths=$lib:$lib/openblas-pthread:$lib/hdf5/serial
make -j"$(nproc)" BUILD="$build/arm64" CC="$triplet-gcc --sysroot=$sysroot" WITH_SCALAPACK=0 \
    WITH_CUDA=0 \
    HDF5_CFLAGS="-I$sysroot/usr/include/hdf5/serial" HDF5_LIBS="-L$lib/hdf5/serial -lhdf5" \
    MPI_CFLAGS= LDFLAGS="-L$lib/openblas-pthread -Wl,-rpath-link,$paths" \
    plain-build || exit 1

export FUGU_TEST_SHORT=1 sysroot
export inside=/usr/lib/$triplet # as the emulated program sees it
inside=$inside/openblas-pthread:$inside/hdf5/serial:$inside:/lib/$triplet

# One program, its seconds, and its output in one piece.
run_one() {
    local text code=0
    text=$(qemu-aarch64 -L "$sysroot" -E LD_LIBRARY_PATH="$inside" -E OPENBLAS_NUM_THREADS=1 "$1" \
        2>&1) || code=1
    printf '== %s: %d s\n%s\n' "$(basename "$1")" $SECONDS "$text"
    return $code
}
export -f run_one
# The longest first, so that they do not run alone at the end.
tests=$build/arm64/plain/tests
first='apply geqrf policies layouts'
{
    for t in $first; do echo "$tests/kernels/test_$t"; done
    find "$tests" -name 'test_*' -type f ! -name '*.[od]' | grep -Ev "/test_(${first// /|})$"
} | xargs -P "$(nproc)" -I{} bash -c 'run_one {}'
