#!/bin/bash
# The cuda backend from file to file. There may be no GPU here: the program of build/simt runs the
# kernels on the CPU. The same bits with copies and without, on any number of ranks, after a kill.
. "$(dirname "$0")/lib.sh"
simt=$(dirname "$FUGU")/simt/fugu
[ -x "$simt" ] || { echo "$simt was not built"; exit 77; }
expect 0 "$simt" gen small.h5 --add mixed:12x9x300:s
expect 0 "$simt" gen mid.h5 --add gaussian:70x48x24:d
expect 0 "$simt" gen large.h5 --add gaussian:150x130x3:c
for f in small mid large; do
    expect 0 "$simt" qr $f.h5 -o $f-qr.h5 -q --backend cuda --check full --unit-size 64K
    expect 0 "$simt" verify $f.h5 $f-qr.h5
    expect 0 env SIMT_DIRECT=0 "$simt" qr $f.h5 -o $f-staged.h5 -q --backend cuda --check full \
        --unit-size 64K
    same $f-qr.h5 $f-staged.h5
    expect 0 env SIMT_ARCH=90 SIMT_SCHEDULE=reverse "$simt" qr $f.h5 -o $f-90.h5 -q \
        --backend cuda --check full --unit-size 64K
    same $f-qr.h5 $f-90.h5
    expect 0 mpirun -n 3 "$simt" qr $f.h5 -o $f-3.h5 -q --backend cuda --check full --unit-size 64K
    same $f-qr.h5 $f-3.h5
done
expect 137 env FUGU_FAULT=append:3:kill "$simt" qr mid.h5 -o k.h5 -q --backend cuda --check full \
    --unit-size 64K
expect 0 "$simt" qr mid.h5 -o k.h5 -q --backend cuda --check full --unit-size 64K --resume
same mid-qr.h5 k.h5
expect 0 "$simt" info mid-qr.h5
says out.txt 'backend cuda'
# A device that fails ends the run with its message, and no file that looks whole.
expect 3 env FUGU_CUDA_SHARED=999999 "$simt" qr large.h5 -o bad.h5 -q --backend cuda
one_line 'backend cuda.*shared memory'
absent bad.h5
# Without a GPU: said plainly when cuda is asked for, passed over by auto.
if ! "$FUGU" --version | grep -q 'backend cuda *usable'; then
    expect 3 "$FUGU" qr mid.h5 -o no.h5 --backend cuda
    one_line 'backend cuda cannot be used here'
    absent no.h5
    expect 0 "$FUGU" qr mid.h5 -o auto.h5 -q
fi
finish
