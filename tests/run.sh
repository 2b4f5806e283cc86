#!/bin/bash
# Runs the tests that were built under BUILD and ends with one line "N passed, N failed, N skipped".
# Usage: tests/run.sh BUILD [unit|mpi|cli|io|simt|isa|arm64 ...]   (default: all)
# A test file with an MPI header line "ranks: 1 2 3" runs once for each number of ranks. A script
# that exits with 77 is skipped; its last line is the reason. No test at all is a failure.
set -u
build=$(realpath "$1")
shift
areas=${*:-unit mpi cli io simt isa arm64}
cd "$(dirname "$0")/.." || exit 1
passed=0 failed=0 skipped=0
limit=${FUGU_TEST_TIMEOUT:-1500}
log=$(mktemp)
trap 'rm -f "$log" "$log".*' EXIT
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OPENBLAS_NUM_THREADS=1
export OMPI_MCA_rmaps_base_oversubscribe=1 OMPI_MCA_hwloc_base_binding_policy=none
export OMPI_MCA_btl_base_warn_component_unused=0

fail() { # name
    failed=$((failed + 1))
    echo "FAILED $1"
    sed 's/^/    /' "$log" | tail -n 40
}

# A Criterion program: every test counts; one that runs none fails.
criterion() { # name command...
    local name=$1 start=$SECONDS code=0
    shift
    timeout "$limit" "$@" --tap="$log.tap" >"$log" 2>&1 || code=$?
    local ok bad skip
    skip=$(grep -ci '^ok.*# skip' "$log.tap" 2>/dev/null)
    ok=$(($(grep -c '^ok' "$log.tap" 2>/dev/null) - skip))
    bad=$(grep -c '^not ok' "$log.tap" 2>/dev/null)
    cat "$log.tap" >>"$log" 2>/dev/null
    if [ "$code" -ne 0 ] || [ "$bad" -gt 0 ] || [ $((ok + skip)) -eq 0 ]; then
        [ "$bad" -gt 0 ] && failed=$((failed + bad - 1))
        fail "$name (exit $code)"
    else
        echo "ok $name: $ok tests ($((SECONDS - start)) s)"
    fi
    grep -i '^ok.*# skip' "$log.tap" 2>/dev/null | sed "s|^ok *-* *|skipped $name: |"
    passed=$((passed + ok)) skipped=$((skipped + skip))
    rm -f "$log.tap"
}

script() { # name command...
    local name=$1 code=0 start=$SECONDS
    shift
    timeout "$limit" "$@" >"$log" 2>&1 || code=$?
    case $code in
    0) passed=$((passed + 1)); echo "ok $name ($((SECONDS - start)) s)" ;;
    77) skipped=$((skipped + 1)); echo "skipped $name: $(tail -n 1 "$log")" ;;
    *) fail "$name (exit $code)" ;;
    esac
}

# What a program that counts for itself has left in the log: "N passed, N failed, N skipped" last.
judge() { # name code seconds
    local ok bad skip
    read -r ok bad skip < <(grep -E '^[0-9]+ passed, [0-9]+ failed, [0-9]+ skipped$' "$log" |
        tail -n 1 | tr -dc '0-9 \n')
    if [ "$2" -ne 0 ] || [ $((${ok:-0} + ${skip:-0})) -eq 0 ]; then
        failed=$((failed + (${bad:-0} > 0 ? bad - 1 : 0)))
        fail "$1 (exit $2)"
    else
        echo "ok $1: $ok tests ($3 s)"
        sed -n "s|^skipped: *|skipped $1: |p" "$log"
    fi
    passed=$((passed + ${ok:-0})) skipped=$((skipped + ${skip:-0}))
}

counted() { # name command...
    local name=$1 code=0 start=$SECONDS
    shift
    timeout "$limit" "$@" >"$log" 2>&1 || code=$?
    judge "$name" $code $((SECONDS - start))
}

# Builds of the emulated kernels and their tests, one after the other beside what else runs.
simt_variants() { # name...
    local t code start
    for t in "$@"; do
        code=0 start=$SECONDS
        timeout "$limit" bash tests/simt/variant.sh "$build" "$t" >"$log.$t" 2>&1 || code=$?
        echo "$code $((SECONDS - start))" >"$log.$t.end"
    done
}

for area in $areas; do
    case $area in
    unit)
        for t in tests/unit/test_*.c tests/kernels/test_*.c; do
            criterion "${t%.c}" "$build/${t%.c}" -j2
        done
        ;;
    mpi)
        for t in tests/mpi/test_*.c; do
            for n in $(sed -n 's/.*ranks: *\([0-9 ]*\).*/\1/p' "$t" | head -n 1); do
                # One Test a program; rank 0 alone writes the report (the last argument).
                # shellcheck disable=SC2016 # the inner shell expands it
                criterion "${t%.c} on $n ranks" mpirun -n "$n" bash -c \
                    'exec "$0" -j1 $([ "$OMPI_COMM_WORLD_RANK" != 0 ] || echo "$1")' \
                    "$build/${t%.c}"
            done
        done
        ;;
    cli)
        for t in tests/cli/test_*.sh; do
            script "$t" env FUGU="$build/fugu" bash "$t"
        done
        ;;
    io)
        t=tests/io/check_inputs.py
        script $t /usr/bin/python3 $t "$build/dump_catalog"
        ;;
    simt)
        simt_variants tsan asan arm64 &
        for t in tests/simt/test_*.c; do
            counted "${t%.c}" "$build/${t%.c}"
        done
        # The library's tests with the cuda backend on the CPU; then through copies of the batch.
        for t in tests/kernels/test_*.c; do
            criterion "${t%.c} on cuda" env FUGU_TEST_BACKEND=cuda "$build/simt/${t%.c}" -j2
        done
        for t in test_layouts test_policies; do
            criterion "tests/kernels/$t on cuda, staged" env FUGU_TEST_BACKEND=cuda SIMT_DIRECT=0 \
                "$build/simt/tests/kernels/$t" -j2
        done
        wait
        for t in tsan asan arm64; do
            cp "$log.$t" "$log"
            # shellcheck disable=SC2046 # two words
            judge "tests/simt/$t" $(cat "$log.$t.end")
        done
        counted tests/simt/mutate bash tests/simt/variant.sh "$build" mutate
        script "tests/simt/cubin" bash tests/simt/variant.sh "$build" cubin
        ;;
    isa)
        for i in baseline avx512 twice; do
            script "tests/support/isa.sh $i" bash tests/support/isa.sh "$build" $i
        done
        ;;
    arm64) script tests/support/arm64.sh bash tests/support/arm64.sh "$build" ;;
    *) echo "run.sh: unknown area '$area'" >&2; exit 2 ;;
    esac
done
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
