#!/bin/bash
# Several nodes on one machine: mpirun starts its daemons through an agent that gives each a host
# name of its own, so that ranks of different "nodes" speak TCP. Then a node is lost.
. "$(dirname "$0")/lib.sh"
cat >agent <<'A'
#!/bin/bash
host=$1
shift
exec unshare --uts sh -c 'hostname "$1" && shift && exec sh -c "$*"' sh "$host" "$@"
A
chmod +x agent
# shellcheck disable=SC2016 # the other shell expands it
./agent there 'test "$(hostname)" = there' 2>/dev/null ||
    { echo "no host names of one's own here (unshare --uts)"; exit 77; }
# shellcheck disable=SC2054 # commas within an option
nodes=(mpirun --mca plm rsh --mca plm_rsh_agent "$work/agent" --mca btl tcp,self
    --mca btl_tcp_if_include lo --mca oob_tcp_if_include lo --mca plm_rsh_no_tree_spawn 1)
"$FUGU" gen in.h5 -q --seed 9 --add gaussian:20x20x3000:d --add gaussian:64x40x100:z \
    --add gaussian:200x150x20:c
expect 0 "$FUGU" qr in.h5 -o one.h5 --unit-size 64K --scalapack 0
"${nodes[@]}" --host n1:1,n2:1 -n 2 hostname >out.txt 2>err.txt && grep -q n2 out.txt ||
    { tail -n 3 err.txt; echo "mpirun does not start emulated nodes here"; exit 77; }

for schedule in dynamic static; do
    expect 0 "${nodes[@]}" --host n1:2,n2:2,n3:1 -n 5 "$FUGU" qr in.h5 -o five.h5 --overwrite \
        --unit-size 64K --schedule $schedule --json five.json
    says err.txt '5 ranks on 3 nodes'
    same one.h5 five.h5
    cases=$((cases + 1))
    least=$(sed -n 's/.*"units_of_a_rank_min": \([0-9]*\).*/\1/p' five.json)
    [ "$least" -ge 1 ] || complain "a rank did $least units"
done
# ScaLAPACK over the nodes
says five.json '"agreed": 2'

# a node is lost in the middle: the run ends, and another set of nodes goes on
"$FUGU" gen slow.h5 -q --add gaussian:100x100x300:d
slow=("$FUGU" qr slow.h5 --unit-size 300K --scalapack 0)
expect 0 "${slow[@]}" -o good.h5
FUGU_FAULT=factor:50:slow "${nodes[@]}" -x FUGU_FAULT --host n1:1,n2:2 -n 3 \
    "${slow[@]}" -o lost.h5 -q >out.txt 2>err.txt &
run=$!
for _ in $(seq 300); do
    [ "$(stat -c %s lost.h5.part.journal.1.1 2>/dev/null || echo 0)" -gt 560 ] && break
    sleep 0.02
done
daemon=$(pgrep -f 'orted.*ess_base_vpid.* 2 ' | tail -n 1)
[ -n "$daemon" ] || daemon=$(pgrep -n orted)
kill -9 "$daemon"
code=0 last="a node is lost"
wait $run || code=$?
cases=$((cases + 1))
[ $code -ne 0 ] && [ ! -e lost.h5 ] && [ -e lost.h5.part ] ||
    complain "exit $code, $(echo lost.h5*)"
for _ in $(seq 100); do # what is left of its ranks ends by itself
    pgrep -f "$FUGU qr slow.h5" >/dev/null || break
    sleep 0.1
done
expect 0 "${nodes[@]}" --host n4:1,n5:1 -n 2 "${slow[@]}" -o lost.h5 --resume
says err.txt 'going on with lost.h5.part'
same good.h5 lost.h5
finish
