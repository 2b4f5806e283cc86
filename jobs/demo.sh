#!/bin/sh
# Shows what fugu does on a small mixed file: make, look, factor on two ranks, verify.
# Usage: demo.sh path/to/fugu
set -eu
fugu=$(realpath "${1:-build/fugu}")
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"

launch="mpirun -n 2 --bind-to none --oversubscribe"
[ "$(id -u)" != 0 ] || launch="$launch --allow-run-as-root"

say() { printf '\n\033[1m%s\033[0m\n' "$*"; }
step() { printf '$ %s\n' "$*"; }

say "1. A file of matrices: four types, 3 to 512 columns, tall and wide, one of them with a NaN"
step "fugu gen in.h5 --add gaussian:8x8x20000:d --add ..."
"$fugu" gen in.h5 --seed 7 \
    --add gaussian:8x8x20000:d:name=kalman/gain --add integers:3x3x1000:s:name=camera/rotation \
    --add gaussian:16x4x5000:c:name=radio/channel --add nan:24x24x1:d:name=kalman/broken \
    --add mixed:24x24x999:d:name=kalman/state --add graded-down:64x64x400:s:name=layers/w0 \
    --add randsvd-geometric:96x48x300:d:name=layers/w1 --add gaussian:40x90x200:z:name=blocks/wide \
    --add near-rank-deficient:200x130x10:d:name=blocks/rank \
    --add gaussian:300x300x6:c:name=blocks/c \
    --add gaussian:512x512x4:s:name=layers/w2 --add hilbert:12x12x10:d:name=blocks/hilbert

say "2. What is in it"
step "fugu info in.h5"
"$fugu" info in.h5

say "3. V, T, R and tau of every matrix, on two ranks, a few of them factored again by ScaLAPACK"
step "mpirun -n 2 fugu qr in.h5 -o out.h5"
status=0
$launch "$fugu" qr in.h5 -o out.h5 >results 2>messages || status=$?
grep -v -e '^-----' -e '^mpirun' -e '^Primary job' -e 'non-zero' -e '^the job' -e 'Process name' \
    -e 'Exit code' -e '^$' messages || true
cat results
if [ "$status" -ne 1 ]; then
    echo "demo: qr ended with $status; 1 was expected, for the matrix with a NaN" >&2
    exit 1
fi
echo "(exit code 1: one matrix is not finite. It has status 3; all others are done.)"

say "4. Are the results right? Recomputed from the two files alone, in higher precision"
step "fugu verify in.h5 out.h5"
"$fugu" verify in.h5 out.h5

say "Done. Your own file: mpirun -n 2 $fugu qr yours.h5 -o results.h5"
