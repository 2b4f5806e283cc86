#!/bin/bash
# The tests of kernels on the CPU in another build: asan (with UBSan), tsan, arm64 (qemu-user); or
# mutate: leaves out each line with synchronisation of simt_cases.cu and of the QR kernels in turn,
# which some test has to notice unless the line says "redundant"; or cubin: assembles for the GPUs.
# Ends with "N passed, N failed, N skipped"; cubin with exit 77 and a reason where there is no nvcc.
# Usage: tests/simt/variant.sh BUILD NAME
set -u
build=$(realpath "$1")
name=$2
cd "$(dirname "$0")/../.." || exit 1
export FUGU_TEST_SHORT=1 WITH_CUDA=0
triplet=aarch64-linux-gnu

skip() { # a counted skip
    echo "skipped: $1"
    echo "0 passed, 0 failed, 1 skipped"
    exit 0
}

# Builds quietly into build/simt-NAME; arguments of make. The log is shown when it fails.
build_variant() {
    mkdir -p "$build/simt-$name"
    make -s -j1 BUILD="$build/simt-$name" KERNEL_OPT=-O0 "$@" simt-programs \
        >"$build/simt-$name/log" 2>&1 || {
        cat "$build/simt-$name/log"
        exit 1
    }
}

# Runs every program of a variant; arguments go before it. Adds up their last lines.
run_variant() {
    local code=0 t text passed=0 failed=0 skipped=0 ok bad none
    for t in tests/simt/test_*.c; do
        text=$("$@" "$build/simt-$name/${t%.c}" 2>&1) || code=1
        echo "== $(basename "$t")"
        echo "$text"
        read -r ok _ bad _ none _ <<<"$(grep -E '^[0-9]+ passed' <<<"$text" | tail -n 1)"
        [[ $ok =~ ^[0-9]+$ ]] || { code=1; continue; }
        passed=$((passed + ok)) failed=$((failed + bad)) skipped=$((skipped + none))
    done
    echo "$passed passed, $failed failed, $skipped skipped"
    exit $code
}

case $name in
asan)
    build_variant CFLAGS="-O1 -g -fno-omit-frame-pointer -fsanitize=address,undefined \
        -fno-sanitize-recover=undefined"
    run_variant env
    ;;
tsan)
    build_variant CFLAGS="-O1 -g -fsanitize=thread"
    # setarch: the runtime of gcc 12 wants its addresses where they were before 32 random bits.
    run_variant setarch -R env TSAN_OPTIONS=halt_on_error=1:report_signal_unsafe=0
    ;;
arm64)
    [ "$(uname -m)" != aarch64 ] || skip "this machine is arm64: the native tests cover it"
    command -v qemu-aarch64 >/dev/null || skip "qemu-aarch64 is not installed (jobs/deps.sh arm64)"
    command -v $triplet-gcc >/dev/null || skip "$triplet-gcc is not installed (jobs/deps.sh arm64)"
    # Kernels use no library of C++, so clang++ will do where the cross g++ is missing.
    if command -v $triplet-g++ >/dev/null; then
        build_variant CC=$triplet-gcc CXX=$triplet-g++ LDFLAGS=-static
    elif command -v clang++ >/dev/null; then
        build_variant CC=$triplet-gcc CXX=clang++ LDFLAGS=-static \
            CXX_TARGET="--target=$triplet -nostdinc++ -isystem /usr/$triplet/include"
    else
        skip "neither $triplet-g++ nor clang++ is installed"
    fi
    run_variant qemu-aarch64
    ;;
mutate)
    sites=$(mktemp)
    trap 'rm -f "$sites" "$sites".*' EXIT
    for t in test_simt_cases test_simt_qr; do
        SIMT_SITES=$sites.one "$build/tests/simt/$t" >/dev/null || exit 1
        sort -u "$sites.one" | sed "s/^/$t:/" >>"$sites"
        rm -f "$sites.one"
    done
    try() { # program:file:line
        local t file line text program tsan caught=0
        IFS=: read -r t file line <<<"$1"
        program=$build/tests/simt/$t
        text=$(sed -n "${line}p" "$file")
        # Twice as long as any good run, should the mutant never end.
        SIMT_DROP=$file:$line timeout 40 "$program" >/dev/null 2>&1 || caught=1
        # A missing acquire, release or fence of the memory model shows in ThreadSanitizer alone.
        tsan=$build/simt-tsan/tests/simt/$t
        [ $caught = 1 ] || [ ! -x "$tsan" ] ||
            SIMT_DROP=$file:$line TSAN_OPTIONS=halt_on_error=1 timeout 120 setarch -R "$tsan" \
                >/dev/null 2>&1 || caught=tsan
        if [ $caught != 0 ] || [[ $text == *redundant* ]]; then
            echo "$file:$line: caught $caught: $text"
        else
            echo "NOT NOTICED $file:$line: $text"
        fi
    }
    export -f try
    export build
    # shellcheck disable=SC2016 # the inner shell expands it
    xargs -a "$sites" -P "$(nproc)" -I '{}' bash -c 'try "$1"' - '{}' >"$sites.out"
    grep -v '^NOT NOTICED' "$sites.out" | sort
    grep '^NOT NOTICED' "$sites.out" | sort
    failed=$(grep -c '^NOT NOTICED' "$sites.out")
    passed=$(($(wc -l <"$sites.out") - failed))
    echo "$passed passed, $failed failed, 0 skipped"
    [ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
    ;;
cubin)
    nvcc=$(make -s --no-print-directory info | sed -n 's/^CUDA compiler //p')
    [ "$nvcc" != none ] || {
        echo "no nvcc: whether the PTX assembles was not checked"
        exit 77
    }
    make -s -j1 BUILD="$build" cubins && tests/lint/cubins.sh "$build"
    ;;
*)
    echo "variant.sh: unknown variant '$name'" >&2
    exit 2
    ;;
esac
