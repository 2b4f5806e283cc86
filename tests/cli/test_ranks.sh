#!/bin/bash
# The same bytes for any number of ranks and threads, schedule and run; small units, every rank at
# work.
. "$(dirname "$0")/lib.sh"
"$FUGU" gen in.h5 -q --seed 11 --add gaussian:8x8x4000:d --add gaussian:16x24x300:z \
    --add mixed:40x33x200:s --add randsvd-geometric:130x70x30:c --add gaussian:200x200x6:d \
    --add nan:9x9x2:d --add zero:0x5x3:d --add gaussian:5x5x0:d
expect 1 "$FUGU" qr in.h5 -o one.h5 --unit-size 64K --json one.json
for n in 1 2 3 5; do
    for s in dynamic static; do
        expect 1 mpirun -n $n "$FUGU" qr in.h5 -o $n$s.h5 --unit-size 64K --schedule $s \
            --json $n$s.json
        same one.h5 $n$s.h5
        cases=$((cases + 1))
        units=$(sed -n 's/^ *"units": \([0-9]*\),$/\1/p' $n$s.json | head -n 1)
        least=$(sed -n 's/.*"units_of_a_rank_min": \([0-9]*\).*/\1/p' $n$s.json)
        [ "$units" -ge 20 ] && [ "$least" -ge 1 ] || complain "$units units, a rank did $least"
    done
done
expect 1 "$FUGU" qr in.h5 -o large-units.h5 --unit-size 1G --scalapack 0
same one.h5 large-units.h5
for t in 0 auto 2 3; do
    expect 1 "$FUGU" qr in.h5 -o threads-$t.h5 --threads $t
    same one.h5 threads-$t.h5
done
expect 1 mpirun -n 2 "$FUGU" qr in.h5 -o teams.h5 --unit-size 64K --threads 2
says err.txt '2 ranks on 1 node, 2 threads each'
same one.h5 teams.h5
expect 0 "$FUGU" verify in.h5 one.h5
says out.txt 'PASSED'
says out.txt '2 of them not finite'

# more ranks than units, one matrix, no matrix
"$FUGU" gen single.h5 -q --add gaussian:30x20x1:d
"$FUGU" gen none.h5 -q --add gaussian:30x20x0:d --add zero:0x0x4:s
for f in single none; do
    expect 0 "$FUGU" qr $f.h5 -o $f-1.h5
    expect 0 mpirun -n 5 "$FUGU" qr $f.h5 -o $f-5.h5
    same $f-1.h5 $f-5.h5
    expect 0 "$FUGU" verify $f.h5 $f-5.h5
done
finish
