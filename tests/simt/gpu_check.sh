#!/bin/bash
# The kernels on the GPU of this machine: every primitive and every QR case against the same
# expectations and bits as on the CPU, recorded tensor-core vectors, compute-sanitizer over the
# small cases, and times. Each test is a process of its own with a limit: one that breaks the device
# or never ends takes no other with it. Ends with "N passed, N failed, N skipped"; exit 77 and one
# line where there is no GPU. `make gpu-check` builds the programs first.
# Usage: tests/simt/gpu_check.sh BUILD
set -u
cd "$(dirname "$0")/../.." || exit 1
programs=$1/gpu/tests
limit=${FUGU_TEST_TIMEOUT:-300}
passed=0 failed=0 skipped=0
export FUGU_TEST_BACKEND=cuda

if [ ! -x "$programs/simt/gpu_time" ]; then
    echo "the programs for a GPU were not built: there is no nvcc"
    exit 77
fi

# Adds up the last line of a program, shows what it said when that is of interest.
count() { # name command...
    local name=$1 text code=0 ok bad none
    shift
    text=$(timeout -k 10 "$limit" "$@" 2>&1) || code=$?
    read -r ok bad none < <(grep -E '^[0-9]+ passed, [0-9]+ failed, [0-9]+ skipped$' <<<"$text" |
        tail -n 1 | tr -dc '0-9 \n')
    if [ "$code" -ne 0 ] || [ $((${ok:-0} + ${none:-0})) -eq 0 ]; then
        [ "${bad:-0}" -gt 0 ] || bad=1
        echo "FAILED $name (exit $code)"
        tail -n 60 <<<"$text" | sed 's/^/    /'
    else
        echo "ok $name"
        grep -E '^skipped|by mma on|on the device:|multiprocessors|^kernel |%$' <<<"$text" |
            sed 's/^/    /'
    fi
    passed=$((passed + ${ok:-0})) failed=$((failed + ${bad:-0})) skipped=$((skipped + ${none:-0}))
}

# compute-sanitizer leaves the last line of the program; its own verdict is the exit status.
sanitize() { # tool program
    count "$2 under $1" compute-sanitizer --tool "$1" --report-api-errors no --error-exitcode 9 \
        "$programs/simt/$2"
}

why=$("$programs/simt/gpu_time" "=time/device")
if [ $? -eq 77 ]; then
    echo "$why"
    exit 77
fi
for file in tests/simt/gpu_time.c tests/simt/test_simt_{cases,vectors,qr}.c \
    tests/kernels/test_{geqrf,policies,layouts,apply,syrk}.c; do
    program=$programs/${file#tests/}
    while IFS= read -r name; do
        count "$(basename "${file%.c}") $name" "${program%.c}" "=$name"
    done < <(sed -n 's|^Test(\([a-z0-9_]*\), *\([a-z0-9_]*\)).*|\1/\2|p' "$file")
done
limit=$((4 * limit))
for tool in memcheck racecheck synccheck; do
    if command -v compute-sanitizer >/dev/null; then
        sanitize $tool test_simt_cases
        sanitize $tool test_simt_qr
    else
        echo "skipped: no compute-sanitizer for $tool"
        skipped=$((skipped + 1))
    fi
done
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
