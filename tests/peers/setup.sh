#!/bin/bash
# Makes the peers of `fugu bench --peers` in BUILD/peers: what is installed, and libraries from PyPI
# wheels in a folder of their own there. Every step may fail; it is said, and the rest goes on.
# Installs nothing outside BUILD/peers. What is there from an earlier run is kept.
# Usage: tests/peers/setup.sh BUILD
set -u
build=${1:?usage: setup.sh BUILD}
mkdir -p "$build/peers/bin" "$build/peers/wheels" || exit 1
dir=$(realpath "$build/peers")
cd "$(dirname "$0")/../.." || exit 1
wheels=$dir/wheels
cc=${CC:-cc} cxx=${CXX:-c++}
log=$dir/setup.log
: >"$log"

found() {
    echo "peers: $1: $2"
}
absent() { # name, why, what helps
    echo "not found: $1: $2${3:+; $3}"
}

# wheel NAME FILE...: the package is unpacked in wheels/ unless one of the files is there already.
wheel() {
    local name=$1 file
    shift
    for file in "$@"; do
        [ ! -e "$file" ] || return 0
    done
    python3 -m pip download --quiet --no-deps --only-binary :all: --disable-pip-version-check \
        --dest "$wheels" "$name" >>"$log" 2>&1
    for file in "$wheels"/*.whl; do
        python3 -m zipfile -e "$file" "$wheels" >>"$log" 2>&1
        rm -f "$file"
    done
}

# Compiles unless the output is newer than every source of the peers.
compile() { # output, compiler, arguments...
    local out=$1 source new=1
    shift
    for source in tests/peers/*.[ch]*; do
        [ "$out" -nt "$source" ] || new=0
    done
    [ $new = 1 ] || "$@" -O3 -march=native -DNDEBUG -I. -o "$out" >>"$log" 2>&1
}

# The peer starts and has something to offer, else it is removed and its reason said.
try() { # name, hint
    local said
    said=$(timeout 60 "$dir/peer_$1" </dev/null 2>>"$log")
    if [[ $said == *$'\nready' ]]; then
        found "$1" "$(sed -n "1s/^peer $1 //p" <<<"$said")"
    else
        absent "$1" "$(sed -n 's/^cannot //p' <<<"$said" | head -n 1)" "$2"
        rm -f "$dir/peer_$1"
    fi
}

# lapack NAME LIBRARY HINT [SETTING]: a peer over a LAPACK library, with an environment setting.
# MKL finds its parts beside itself.
lapack() {
    if [ -z "$2" ]; then
        absent "$1" "no library" "$3"
        return
    fi
    cat >"$dir/peer_$1" <<END
#!/bin/sh
export LD_LIBRARY_PATH="$(dirname "$2")\${LD_LIBRARY_PATH:+:\$LD_LIBRARY_PATH}"
[ "\${MKL_NUM_THREADS:-1}" != 1 ] || export MKL_THREADING_LAYER=SEQUENTIAL
${4:+export $4}
exec "$dir/bin/lapack" "$2" "$1"
END
    chmod +x "$dir/peer_$1"
    try "$1" "$3"
}

shopt -s nullglob
rm -f "$dir"/peer_*
pip="python3 -m pip is needed for wheels (apt-get install python3-pip)"
python3 -m pip --version >/dev/null 2>&1 || absent pip "python3 -m pip does not run" "$pip"

if compile "$dir/bin/lapack" "$cc" -std=c11 -D_GNU_SOURCE tests/peers/peer_lapack.c \
    tests/peers/peer.c -ldl -lm; then
    debian=$(PATH=$PATH:/sbin:/usr/sbin ldconfig -p 2>/dev/null |
        awk '$1 == "libopenblas.so.0" { print $NF; exit }')
    lapack openblas "$debian" 'apt-get install libopenblas0-pthread'

    wheel scipy-openblas32 "$wheels"/scipy_openblas32/lib/libscipy_openblas*.so
    newest=("$wheels"/scipy_openblas32/lib/libscipy_openblas*.so)
    lapack openblas-new "${newest[0]:-}" "python3 -m pip download scipy-openblas32 failed; see $log"

    wheel mkl "$wheels"/mkl-*.data/data/lib/libmkl_rt.so.*
    mkl=("$wheels"/mkl-*.data/data/lib/libmkl_rt.so.*)
    lapack mkl "${mkl[0]:-}" "python3 -m pip download mkl failed (x86-64 only); see $log"
    # On processors of other makers MKL takes plain kernels; this setting gets its AVX2 ones.
    if [ -e "$dir/peer_mkl" ] && ! grep -q GenuineIntel /proc/cpuinfo && grep -q avx2 /proc/cpuinfo
    then
        lapack mkl-avx2 "${mkl[0]}" '' MKL_CBWR=AVX2
    fi
else
    absent 'LAPACK peers' "tests/peers/peer_lapack.c does not compile; see $log" ''
fi

eigen=/usr/include/eigen3
eigen_object() { # letter, element type
    compile "$dir/bin/eigen_$1.o" "$cxx" -std=c++17 -isystem "$eigen" "-DSCALAR=$2" \
        "-DFACTOR=factor_$1" -c tests/peers/peer_eigen.cpp
}
eigen_objects() { # the templates take a minute or two
    eigen_object s float & eigen_object d double &
    wait
    eigen_object c 'std::complex<float>' & eigen_object z 'std::complex<double>' &
    wait
    compile "$dir/bin/peer.o" "$cc" -std=c11 -D_GNU_SOURCE -c tests/peers/peer.c
}
if [ ! -d "$eigen/Eigen" ]; then
    absent eigen "no $eigen" 'apt-get install libeigen3-dev g++'
elif eigen_objects && compile "$dir/bin/eigen" "$cxx" -std=c++17 -isystem "$eigen" \
    tests/peers/peer_eigen.cpp "$dir"/bin/eigen_[sdcz].o "$dir/bin/peer.o" -lm; then
    cp "$dir/bin/eigen" "$dir/peer_eigen"
    try eigen ''
else
    absent eigen "tests/peers/peer_eigen.cpp does not compile; see $log" ''
fi

# BLASFEO: as its own `make install` leaves it (BLASFEO=PREFIX, else /opt/blasfeo), else as CasADi's
# wheel carries it. Its header names the target: GENERIC has no kernels for vectors.
prefix=${BLASFEO:-/opt/blasfeo}
library=$prefix/lib/libblasfeo.so include=$prefix/include origin=installed number=
if [ ! -e "$library" ]; then
    wheel casadi "$wheels"/casadi/libblasfeo.so.?
    carried=("$wheels"/casadi/libblasfeo.so.?)
    versions=("$wheels"/casadi/libblasfeo.so.*.*)
    library=${carried[0]:-} include=$wheels/casadi/include origin='CasADi wheel'
    [ ${#versions[@]} -eq 0 ] || number="${versions[0]##*.so.} "
fi
target=$(sed -n 's/^#define TARGET_\(X[0-9A-Z_]*\|ARM[0-9A-Z_]*\|GENERIC\)$/\1/p' \
    "$include/blasfeo_target.h" 2>/dev/null | head -n 1)
version="${number}target ${target:-unknown} ($origin)"
if [ -z "$library" ] || [ ! -e "$include/blasfeo_common.h" ]; then
    absent blasfeo "no $prefix/lib/libblasfeo.so" "python3 -m pip download casadi failed; see $log"
elif compile "$dir/bin/blasfeo" "$cc" -std=c11 -D_GNU_SOURCE "-DPEER_VERSION=\"BLASFEO $version\"" \
    -isystem "$include" tests/peers/peer_blasfeo.c tests/peers/peer.c "$library" \
    "-Wl,-rpath,$(dirname "$library")" -lm; then
    cp "$dir/bin/blasfeo" "$dir/peer_blasfeo"
    try blasfeo ''
else
    absent blasfeo "tests/peers/peer_blasfeo.c does not compile; see $log" ''
fi
exit 0
