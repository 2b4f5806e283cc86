#!/bin/bash
# --tuning: a printed table is the table, what is wrong is named with its line, ranks agree.
. "$(dirname "$0")/lib.sh"
"$FUGU" gen in.h5 -q --add gaussian:20x20x50:d --add gaussian:70x40x5:s
expect 0 "$FUGU" info --tuning
cp out.txt table.csv
says table.csv '^fugu-tuning,[0-9]+,built-in$'
says table.csv '^isa,dtype,shape,n_max,kernel,block,group,provenance$'
expect 0 "$FUGU" qr in.h5 -o one.h5 --json one.json
says err.txt 'tuning built-in v[0-9]+ [0-9a-f]{8}$'
says one.json '"tuning": "built-in v[0-9]+ [0-9a-f]{8}"'
expect 0 "$FUGU" qr in.h5 -o two.h5 --tuning table.csv
same one.h5 two.h5
sed 's/^fugu-tuning,\([0-9]*\),built-in/fugu-tuning,\1,mine/' table.csv >mine.csv
for n in 1 3; do
    expect 0 mpirun -n $n "$FUGU" qr in.h5 -o mine-$n.h5 --tuning mine.csv
    says err.txt 'tuning mine v'
done
same mine-1.h5 mine-3.h5
expect 3 "$FUGU" qr in.h5 -o no.h5 --tuning absent.csv
one_line 'absent.csv: No such file'
sed 's/^fugu-tuning,[0-9]*/fugu-tuning,999/' table.csv >version.csv
expect 3 "$FUGU" qr in.h5 -o no.h5 --tuning version.csv
one_line 'version.csv: line [0-9]+: version 999; this program reads version [0-9]+'
echo 'avx2,d,square,20,magic,32,48,x' >>mine.csv
expect 3 mpirun -n 2 "$FUGU" qr in.h5 -o no.h5 --tuning mine.csv
one_fugu_line 'mine.csv: line [0-9]+: kernel "magic" is none of lanes, blocks'
absent no.h5
absent no.h5.part
finish
