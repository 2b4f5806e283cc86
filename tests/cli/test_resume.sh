#!/bin/bash
# Stopping and going on: signals, limits, other rank counts, what is refused, what is set aside.
. "$(dirname "$0")/lib.sh"
"$FUGU" gen in.h5 -q --seed 3 --add gaussian:24x24x800:d --add gaussian:60x40x60:z \
    --add nan:7x7x2:d
qr=("$FUGU" qr in.h5 -o out.h5 --unit-size 64K --scalapack 0)
expect 1 "$FUGU" qr in.h5 -o good.h5 --unit-size 64K --scalapack 0 --json good.json

# begin: a run that is killed when some units are done
begin() {
    rm -f out.h5*
    FUGU_FAULT=between:${1:-3}:kill expect 137 "${qr[@]}"
    cases=$((cases + 1))
    [ -e out.h5.part ] && [ ! -e out.h5 ] || complain "$(ls out.h5*)"
}
whole() {
    same good.h5 out.h5
    absent out.h5.part
    absent out.h5.part.journal.1.0
    absent out.h5.part.journal.2.0
}

# the summary of a resumed run counts everything, and so does its exit code
begin
expect 1 "${qr[@]}" --resume --json again.json
says err.txt 'going on with out.h5.part: [0-9]+ of '
says again.json '"bad_matrices": 2,'
says out.txt 'nan_7x7_d\[1\] is not finite|nan.*\[1\]'
whole
expect 0 "${qr[@]}" --resume
says err.txt 'complete already; nothing was done'
whole
expect 3 "${qr[@]}" --resume --nb 8
one_fugu_line 'out.h5 is complete, but its list of options is'
begin
for n in 3 2; do
    FUGU_FAULT=data:30:kill:1 expect 137 mpirun -n $n "${qr[@]}" --resume --schedule static
done
expect 1 mpirun -n 5 "${qr[@]}" --resume
whole

# nothing to go on with
expect 1 "$FUGU" qr in.h5 -o fresh.h5 --unit-size 64K --scalapack 0 --resume
same good.h5 fresh.h5
rm -f out.h5*
FUGU_FAULT=layout:5:kill expect 137 "${qr[@]}"
expect 3 "${qr[@]}"
one_fugu_line 'out.h5.part was left by an unfinished run. Use --resume'
expect 1 "${qr[@]}" --resume
whole

# what must be the same, and is named
begin
for change in --nb=16 --unit-size=128K --backend=cpu-ref --check=none; do
    expect 3 "${qr[@]}" --resume $change -q
    one_fugu_line 'out.h5.part was begun with ".*", and now it is ".*--overwrite'
done
touch -d '2001-02-03' in.h5
expect 3 "${qr[@]}" --resume -q
one_fugu_line 'begun with "input changed = '
expect 1 "${qr[@]}" --overwrite
whole
expect 2 "${qr[@]}" --overwrite --resume
one_line 'give one'

# requests to stop: exit 75, and what is done stays
for how in TERM INT USR1; do
    rm -f out.h5*
    FUGU_FAULT=factor:10:slow "${qr[@]}" -q >out.txt 2>err.txt &
    run=$!
    for _ in $(seq 200); do
        [ "$(stat -c %s out.h5.part.journal.1.0 2>/dev/null || echo 0)" -gt 900 ] && break
        sleep 0.01
    done
    kill -s $how $run
    code=0 last="kill -s $how"
    wait $run || code=$?
    cases=$((cases + 1))
    [ $code -eq 75 ] || complain "exit $code, expected 75"
    one_line "stopped by signal $how. [0-9]+ of [0-9]+ units are done and kept: use --resume"
    expect 1 "${qr[@]}" --resume
    whole
done
rm -f out.h5*
expect 75 mpirun -n 2 "${qr[@]}" --max-time 0 -q
one_fugu_line 'stopped by --max-time'
expect 1 "${qr[@]}" --resume --max-time 1h
whole
touch halt
begin
expect 75 "${qr[@]}" --resume --stop-file halt -q
one_line 'stopped by the file halt'
expect 1 "${qr[@]}" --resume --stop-file no-such-file
whole
expect 2 "${qr[@]}" --max-time 3x
one_line "'3x' is no time"
SLURM_JOB_END_TIME='' expect 75 "${qr[@]}" --overwrite --max-time auto -q
env -u SLURM_JOB_END_TIME "${qr[@]}" --overwrite --max-time auto >out.txt 2>err.txt
last='--max-time auto outside of Slurm'
one_line 'SLURM_JOB_END_TIME is not set'

# a unit that ends the program twice is set aside, its neighbours are not
rm -f out.h5*
for _ in 1 2; do
    FUGU_FAULT=factor:1:abort expect 134 "${qr[@]}" --resume
done
expect 1 "${qr[@]}" --resume
says out.txt 'was set aside'
expect 1 "$FUGU" verify in.h5 out.h5
says out.txt '1 failed|FAILED'

# bits that flip on the disk: the last records are looked at again, --verify-full looks at all
flip() { # a byte in the middle of V of the first batch, or at its end
    python3 -c '
import sys
f = open("out.h5.part", "r+b"); g = open("good.h5", "rb").read(); p = f.read()
at = [i for i in range(4096, len(p), 997) if p[i] and p[i] == g[i]][int(sys.argv[1])]
f.seek(at); f.write(bytes([p[at] ^ 64]))' "$1"
}
begin 9
flip 5
expect 3 "${qr[@]}" --resume --verify-full -q
one_line 'unit [0-9]+ \(from .*\) does not read as it was written: .*use --resume'
absent out.h5
expect 1 "${qr[@]}" --resume --verify-full
whole

# shards: processes that know nothing of each other share one output
shards() { # N: all at once
    local i
    for ((i = 1; i <= $1; i++)); do
        "${qr[@]}" -q --shard "$i/$1" >"out-$i.txt" 2>"err-$i.txt" &
    done
    wait
    cat out-*.txt >out.txt
    cat err-*.txt >err.txt
    last="$1 shards"
    cases=$((cases + 1))
    [ ! -s err.txt ] || complain "a shard complained"
}
qr=("$FUGU" qr in.h5 -o out.h5 --unit-size 64K)
for n in 1 2 5; do
    rm -f out.h5*
    shards $n
    whole
done
rm -f out.h5*
for i in 4 2 1; do
    code=0
    "${qr[@]}" --shard $i/4 -q >out.txt 2>err.txt || code=$?
    last="shard $i/4"
    cases=$((cases + 1))
    [ $code -le 1 ] && [ -e out.h5.part ] && [ ! -e out.h5 ] || complain "exit $code"
done
FUGU_FAULT=between:2:kill expect 137 "${qr[@]}" --shard 3/4
shards 4 # all again: three have nothing to do
whole
expect 0 "${qr[@]}" --shard 3/4
says err.txt 'complete already'
rm -f out.h5*
FUGU_FAULT=layout:9:kill expect 137 "${qr[@]}" --shard 2/3
shards 3
whole
rm -f out.h5*
FUGU_FAULT=between:1:kill expect 137 "${qr[@]}" --shard 2/3
expect 1 mpirun -n 2 "${qr[@]}" --resume --scalapack 0
whole
for wrong in 0/3 4/3 a/b 3 1/2/3; do
    expect 2 "${qr[@]}" --shard $wrong
    one_line "'$wrong' is not I/N"
done
expect 2 "${qr[@]}" --shard 1/2 --overwrite
one_line 'by itself'
expect 2 mpirun -n 2 "${qr[@]}" --shard 1/2
one_fugu_line 'under mpirun leave it out'

# memory: one unit at a time is enough, less is not
expect 3 "$FUGU" qr in.h5 -o small.h5 --unit-size 1M --memory 100K -q
one_line -- '--memory 102400 is too little: the largest unit takes [0-9]+ bytes'
absent small.h5.part
expect 1 "$FUGU" qr in.h5 -o small.h5 --unit-size 64K --scalapack 0 --memory 300K
same good.h5 small.h5
finish
