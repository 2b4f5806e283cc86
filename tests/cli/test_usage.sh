#!/bin/bash
# Help, versions and wrong use: one clear line, the right exit code, alone and under mpirun.
. "$(dirname "$0")/lib.sh"

expect 0 "$FUGU"
says out.txt '^usage: fugu'
expect 0 "$FUGU" --version
says out.txt '^fugu [0-9]+\.[0-9]+\.[0-9]+ \('
says out.txt '^HDF5 [0-9]'
for c in qr verify info gen bench; do
    expect 0 "$FUGU" $c --help
    says out.txt "^usage: fugu $c"
    says out.txt '^examples'
    cases=$((cases + 1))
    awk 'length($0) > 79 { exit 1 }' out.txt || complain "a line of --help is longer than 79"
    expect 0 "$FUGU" $c --print-config
done
expect 2 "$FUGU" bogus
one_line "unknown command 'bogus'"
expect 2 "$FUGU" qr
one_line 'file name is missing'
expect 2 "$FUGU" qr in.h5
one_line 'no output named'
expect 2 "$FUGU" qr in.h5 -o out.h5 --bogus
one_line 'unknown option --bogus'
expect 2 "$FUGU" qr in.h5 -o out.h5 extra
one_line "unexpected argument 'extra'"
for o in --shard=0/2 --shard=3/2 --shard=x --log-dir=x --threads=2000 \
    --backend=gpu --outputs=Q --sort-rows --mode=bf16 --schedule=free \
    --nb=0 --nb=x; do
    expect 2 "$FUGU" qr in.h5 -o out.h5 $o
    one_line "${o%%=*}"
done
expect 2 "$FUGU" info
one_line 'file name is missing'
expect 2 "$FUGU" gen x.h5
one_line 'no matrices asked for'
expect 2 "$FUGU" gen x.h5 --add nothing:3x3x3:d
one_line 'unknown family'
expect 2 "$FUGU" gen x.h5 --add gaussian:3x3:d
one_line 'MxNxB'
expect 2 "$FUGU" gen x.h5 --add gaussian:3x3x1:q
absent x.h5
expect 0 "$FUGU" gen --list
says out.txt 'gaussian'

# files
"$FUGU" gen in.h5 -q --add gaussian:12x7x40:d --add nan:5x5x1:s
printf 'no hdf5 here, just text\n' >text.h5
head -c 1000 in.h5 >cut.h5
head -c 300 in.h5 >shorter.h5
mkdir readonly && chmod 555 readonly
expect 3 "$FUGU" qr missing.h5 -o out.h5
one_line 'missing\.h5.*no such file'
expect 3 "$FUGU" qr text.h5 -o out.h5
one_line 'text\.h5.*HDF5'
expect 3 "$FUGU" qr cut.h5 -o out.h5
one_line 'cut\.h5.*truncated'
expect 3 "$FUGU" qr . -o out.h5
one_line 'folder|directory'
expect 3 "$FUGU" qr in.h5 -o no/such/dir/out.h5
one_line 'no/such/dir'
if [ "$(id -u)" != 0 ]; then
    expect 3 "$FUGU" qr in.h5 -o readonly/out.h5
    one_line 'readonly'
fi
expect 3 "$FUGU" qr in.h5 -o in.h5 --overwrite
one_line 'is the input'
ln -s in.h5 soft.h5
ln in.h5 hard.h5
expect 3 "$FUGU" qr in.h5 -o soft.h5 --overwrite
one_line 'is the input'
expect 3 "$FUGU" qr soft.h5 -o hard.h5 --overwrite
one_line 'is the input'
expect 3 "$FUGU" qr in.h5 -o out.h5 --dataset '/no*'
one_line '/no\*'
expect 3 "$FUGU" qr in.h5 -o out.h5 --tolerance 1e-20
one_line 'tolerance'
absent out.h5
absent out.h5.part
# a failure in the middle of a run leaves nothing behind
if /usr/bin/python3 -c 'import h5py' 2>/dev/null; then
    /usr/bin/python3 -c 'import h5py, numpy as np
a = np.ones((5, 3, 3), "i8")
a[3, 1, 1] = 2 ** 60
h5py.File("wide.h5", "w")["a"] = a'
    expect 3 "$FUGU" qr wide.h5 -o out.h5 -q
    one_line 'wide\.h5: /a is int64.*matrix 3.*--narrow'
    expect 3 mpirun -n 2 "$FUGU" qr wide.h5 -o out.h5 -q
    one_fugu_line 'matrix 3'
    expect 0 "$FUGU" qr wide.h5 -o narrow.h5 -q --narrow
fi
absent out.h5.part

# existing output, orphan .part
expect 0 "$FUGU" qr in.h5 -o out.h5 -q --scalapack 0 --dataset '/gauss*'
expect 3 "$FUGU" qr in.h5 -o out.h5
one_line 'out\.h5 exists.*--overwrite'
expect 1 "$FUGU" qr in.h5 -o out.h5 --overwrite
says out.txt '/nan_5x5_s\[0\] is not finite: NaN at row'
touch left.h5.part
expect 3 "$FUGU" qr in.h5 -o left.h5
one_line 'left\.h5\.part.*--overwrite'
expect 1 "$FUGU" qr in.h5 -o left.h5 --overwrite -q
absent left.h5.part
expect 0 "$FUGU" qr in.h5 --dry-run
says out.txt 'nothing was written'

# one rank's environment differs: all leave together
run=("$FUGU" qr in.h5 -o out3.h5)
expect 3 timeout 60 mpirun -n 1 -x FUGU_ISA=bogus "${run[@]}" : -n 1 "${run[@]}"
one_fugu_line 'FUGU_ISA=bogus'
expect 3 timeout 60 mpirun -n 1 "${run[@]}" : -n 1 -x FUGU_ISA=bogus "${run[@]}"
one_fugu_line 'FUGU_ISA=bogus'
absent out3.h5
expect 2 "$FUGU" gen x.h5 --add "gaussian:3x3x1:d:name=$(printf 'n%.0s' $(seq 300))"
expect 0 "$FUGU" gen x.h5 -q --add gaussian:3x3x1:d --add gaussian:3x3x1:d
expect 2 "$FUGU" qr in.h5 -o ''

# the same under mpirun: one line of fugu, the same code
run2=(mpirun -n 2)
expect 2 "${run2[@]}" "$FUGU" qr in.h5 -o out3.h5 --bogus
one_fugu_line 'unknown option --bogus'
expect 3 "${run2[@]}" "$FUGU" qr missing.h5 -o out3.h5
one_fugu_line 'missing\.h5.*no such file'
expect 3 "${run2[@]}" "$FUGU" qr text.h5 -o out3.h5
one_fugu_line 'text\.h5.*HDF5'
expect 3 "${run2[@]}" "$FUGU" qr in.h5 -o no/such/dir/out.h5
one_fugu_line 'no/such/dir'
expect 3 "${run2[@]}" "$FUGU" qr in.h5 -o soft.h5 --overwrite
one_fugu_line 'is the input'
expect 3 "${run2[@]}" "$FUGU" qr in.h5 -o out.h5
one_fugu_line 'exists'
expect 1 "${run2[@]}" "$FUGU" qr in.h5 -o out3.h5 -q
absent out3.h5.part

# a limit on the size of files: the reason and the code, whoever meets it
expect 0 "$FUGU" gen limit.h5 -q --add gaussian:64x64x2000:c
expect 3 bash -c "ulimit -f 20000; exec '$FUGU' qr limit.h5 -o limited.h5 -q"
one_line 'limited\.h5\.part: .*File too large'
expect 3 bash -c "ulimit -f 20000; exec '$FUGU' gen limited.h5 -q --add gaussian:64x64x2000:c"
one_line 'limited\.h5\.part: .*File too large'
absent limited.h5
absent limited.h5.part
finish
