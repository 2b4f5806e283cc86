#!/bin/bash
# jobs/bench_qr.py: runs on a small file, says what it measured, leaves nothing behind. No figure is
# judged.
script=$(realpath "$(dirname "$0")/../../jobs/bench_qr.py")
. "$(dirname "$0")/lib.sh"
command -v python3 >/dev/null || { echo 'python3 is missing'; exit 77; }
mkdir files
bench=(python3 "$script" --fugu "$FUGU" --dir files --size 1M --repeats 1)
for ranks in 1 2; do
    expect 0 "${bench[@]}" --n 20 --ranks $ranks -- --check none
    says out.txt "^327 matrices 20 x 20 float64, .* MB out; ranks: $ranks, threads of each: 1"
    for stage in read factor check write; do
        says out.txt "^$stage +[0-9.]+ s +[0-9.]+ s"
    done
    says out.txt '^wall time of fugu qr +[0-9.]+ s '
    says out.txt '^  until all is on the disk +[0-9.]+ s '
    says out.txt '^  not reading, computing, writing +[0-9.-]+ s +[0-9.-]+ % of the wall time'
    says out.txt '^plain write of as much, with sync +[0-9.]+ s +[0-9.]+ GB/s'
    says out.txt '^factoring alone, by fugu bench +[0-9.]+ s '
    says out.txt '^h5py \+ SciPy geqrf loop'
done
expect 1 "${bench[@]}" -- --nb 0
says err.txt 'bench_qr\.py: .* ended with 2:'
expect 1 python3 "$script" --fugu no/fugu
says err.txt 'no program fugu there'
cases=$((cases + 1))
[ -z "$(ls files)" ] || complain 'files are left behind'
finish
