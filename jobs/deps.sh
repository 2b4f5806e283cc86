#!/bin/sh
# Installs the Debian or Ubuntu packages that fugu needs and that are missing: as root or with sudo;
# otherwise prints the line to run. With the argument `lint`: the tools of the style checks as well;
# with `arm64`: the cross compiler and qemu; `python`, `slurm`: what some tests need.
set -eu

packages="gcc g++ make pkg-config openmpi-bin libopenmpi-dev libhdf5-dev libscalapack-openmpi-dev
 libopenblas-dev liblapacke-dev libcriterion-dev hdf5-tools"
for extra in "$@"; do
    case $extra in
    lint) packages="$packages clang-format clang-tidy cppcheck shellcheck universal-ctags" ;;
    arm64) packages="$packages gcc-aarch64-linux-gnu libc6-dev-arm64-cross qemu-user" ;;
    slurm) packages="$packages slurm-wlm munge" ;;
    python) packages="$packages python3-numpy python3-h5py python3-scipy" ;;
    *) echo "deps.sh: unknown set '$extra' (lint, arm64, python, slurm)" >&2; exit 2 ;;
    esac
done

if ! command -v dpkg-query >/dev/null; then
    echo "deps.sh: this is no Debian or Ubuntu; install what corresponds to:" >&2
    echo "$packages" >&2
    exit 0
fi
missing=""
for p in $packages; do
    dpkg-query -W -f='${Status}' "$p" 2>/dev/null | grep -q 'ok installed' || missing="$missing $p"
done
[ -n "$missing" ] || exit 0

if [ "$(id -u)" = 0 ]; then
    sudo=""
elif command -v sudo >/dev/null && sudo -n true 2>/dev/null; then
    sudo="sudo"
else
    echo "packages are missing; run this once, then again what you ran:" >&2
    echo "  sudo apt-get update && sudo apt-get install -y --no-install-recommends$missing" >&2
    exit 1
fi
echo "installing$missing"
log=$(mktemp)
export DEBIAN_FRONTEND=noninteractive
# shellcheck disable=SC2086 # a list of words
if ! { $sudo apt-get update && $sudo apt-get install -y --no-install-recommends $missing; } \
    >"$log" 2>&1; then
    tail -n 20 "$log" >&2
    echo "deps.sh: apt-get failed; the end of its output is above" >&2
    exit 1
fi
rm -f "$log"
