#!/bin/bash
# Matrices beyond --memory: all ranks together, the same layout and gates; kills, stops, refusals.
. "$(dirname "$0")/lib.sh"
export OPENBLAS_NUM_THREADS=1
run=(timeout 300 mpirun -n)
huge=(--memory 8M --unit-size 1M --scalapack 0)

# a build without ScaLAPACK says what is missing before anything is written
if "$FUGU" --version | grep -q 'ScaLAPACK not compiled in'; then
    "$FUGU" gen k.h5 -q --add gaussian:700x650x1:d
    no=("$FUGU" qr k.h5 -o no.h5 --memory 8M --unit-size 1M -q)
    for ranks in 0 2; do
        if [ $ranks -eq 0 ]; then expect 3 "${no[@]}"; else expect 3 "${run[@]}" 2 "${no[@]}"; fi
        one_fugu_line '700x650, d\) takes [0-9]+ bytes .*ScaLAPACK, which is not compiled in'
        absent no.h5.part
    done
    expect 0 "$FUGU" qr k.h5 -o yes.h5 --memory 64M -q
    finish
fi

# the same datasets, shapes and types as those of one rank; |R| and the signs of its diagonal agree
compare() { # NORMAL HUGE
    last="compare $1 $2"
    cases=$((cases + 1))
    /usr/bin/python3 - "$1" "$2" >out.txt 2>err.txt <<'P' || complain "the outputs differ"
import sys, h5py, numpy as np
a, b = (h5py.File(f) for f in sys.argv[1:])
assert set(a.attrs) == set(b.attrs), (set(a.attrs), set(b.attrs))
for name in a:
    assert set(a[name]) == set(b[name]), name
    for d in a[name]:
        x, y = a[name][d], b[name][d]
        assert (x.shape, x.dtype) == (y.shape, y.dtype), (name, d)
    assert a[name].attrs["fugu"] == b[name].attrs["fugu"]
    assert (a[name]["status"][...] == b[name]["status"][...]).all(), name
    u = np.finfo(a[name]["R"].dtype).eps / 2
    for d in ("R", "V", "T", "tau", "packed"):
        if d not in a[name]:
            continue
        x, y = a[name][d][...], b[name][d][...]
        assert (np.isnan(x) == np.isnan(y)).all(), (name, d)
        ok = np.isfinite(x)
        scale = abs(x[ok]).max() if ok.any() else 1
        assert not ok.any() or abs(x[ok] - y[ok]).max() <= 1e5 * u * scale, (name, d)
    if "sign" in a[name]:
        assert (a[name]["sign"][...] == b[name]["sign"][...]).all(), name
P
}
grid() { # FILE DATASET TEXT
    cases=$((cases + 1))
    last="grid of $2 in $1"
    : >err.txt
    /usr/bin/python3 -c 'import sys, h5py
print(h5py.File(sys.argv[1])[sys.argv[2]].attrs.get("grid", b"none").decode())' "$1" "$2" >out.txt
    [ "$(cat out.txt)" = "$3" ] || complain "the grid is not '$3'"
}

# every type, square, tall, wide, and a batch of small ones beside them
"$FUGU" gen in.h5 -q --seed 3 --add gaussian:24x24x200:d --add gaussian:700x650x2:d \
    --add gaussian:20000x30x1:s --add uniform:500x1300x1:c --add gaussian:640x600x1:z \
    --add randsvd-geometric:60x40x20:z
expect 0 "$FUGU" qr in.h5 -o one.h5 --scalapack 0 --outputs V,T,R,tau,packed --positive-diagonal
for n in 2 3 4 7; do
    expect 0 "${run[@]}" $n "$FUGU" qr in.h5 -o $n.h5 "${huge[@]}" --json $n.json \
        --outputs V,T,R,tau,packed --positive-diagonal
    says err.txt '^ *huge +[0-9]+ .*[0-9]x[0-9]'
    says out.txt '^huge +[0-9]+ +[0-9]+ '
    says $n.json '"bucket": "huge"'
    compare one.h5 $n.h5
    expect 0 "$FUGU" verify in.h5 $n.h5
    says out.txt '0 failed'
    says out.txt '^huge .*PASSED'
    absent $n.h5.part
done
grid 2.h5 gaussian_20000x30_s 'none'
grid 2.h5 gaussian_700x650_d '2x1, blocks of 64'
grid 4.h5 gaussian_700x650_d '2x2, blocks of 64'
grid 4.h5 uniform_500x1300_c '1x4, blocks of 64'
expect 0 "$FUGU" info 4.h5
says out.txt '/gaussian_700x650_d: .*grid 2x2, blocks of 64'
says out.txt '^ *huge '
expect 0 "$FUGU" info 4.h5 --json
says out.txt '"grid": "2x2, blocks of 64"'

# block sizes of T, also larger than those of the grid; checks; the static schedule
for nb in 7 32 100 200; do
    expect 0 "${run[@]}" 3 "$FUGU" qr in.h5 -o nb.h5 "${huge[@]}" -q --overwrite --nb $nb \
        --schedule static --dataset '*700x650*'
    expect 0 "$FUGU" verify in.h5 nb.h5 -v
    says out.txt '^huge +2 .*PASSED'
done
for check in none norms probe full; do
    expect 0 "${run[@]}" 2 "$FUGU" qr in.h5 -o nb.h5 "${huge[@]}" -q --overwrite --check $check \
        --outputs R --dataset '*640x600*'
done

# tall enough that one running sum would miss the gate
"$FUGU" gen tall.h5 -q --add gaussian:100000x12x1:s --add gaussian:100000x7x1:d
expect 0 "${run[@]}" 4 "$FUGU" qr tall.h5 -o tall-qr.h5 --memory 6M --unit-size 1M --scalapack 0
says out.txt '^huge +2 +2 '
expect 0 "$FUGU" verify tall.h5 tall-qr.h5
grid tall-qr.h5 gaussian_100000x12_s '4x1, blocks of 3072x12'

# what cannot be factored; the ends of the range; columns and matrices of zeros
/usr/bin/python3 - <<'P'
import h5py, numpy as np
r = np.random.default_rng(5)
g = lambda: r.standard_normal((600, 500))
nan, inf, over, big, low, zero, graded = (g() for _ in range(7))
nan[431, 77] = np.nan
inf[599, 499] = -np.inf
over[:, 3] = 1.2e308
big[:, 5] *= 1e305
low *= 1e-310
zero[:, [0, 9, 499]] = 0
graded *= 10.0 ** np.linspace(-290, 290, 500)
with h5py.File("odd.h5", "w") as f:
    f["a"] = np.array([g(), nan, inf, over, big, low, zero, graded, 0 * g(), np.eye(600, 500)])
    f.create_dataset("chunked", data=g().astype(">f8"), chunks=(70, 33), compression=1)
    f["int"] = r.integers(-9, 9, (600, 500)).astype("i2")
    f["half"] = r.standard_normal((900, 800)).astype("f2")
P
expect 1 "$FUGU" qr odd.h5 -o odd-1.h5 --scalapack 0 --positive-diagonal --outputs V,T,R,tau,packed
for n in 2 4; do
    expect 1 "${run[@]}" $n "$FUGU" qr odd.h5 -o odd-$n.h5 --memory 6M --unit-size 1M \
        --scalapack 0 --positive-diagonal --outputs V,T,R,tau,packed
    says out.txt '^huge +13 +10 +0 +2 '
    says out.txt '/a\[1\] is not finite: NaN at row 431, column 77'
    says out.txt '/a\[2\] is not finite: Inf at row 599, column 499'
    says out.txt '/a\[3\] has a result that its type cannot hold'
    expect 0 "$FUGU" verify odd.h5 odd-$n.h5
    says out.txt '13 matrices looked at, 13 passed'
    cases=$((cases + 1))
    /usr/bin/python3 - >out.txt 2>err.txt <<P || complain "status, NaN or sign differ"
import h5py, numpy as np
a, b = h5py.File("odd-1.h5"), h5py.File("odd-$n.h5")
for name in a:
    for d in ("status", "sign"):
        assert (a[name][d][...] == b[name][d][...]).all() or name == "a", (name, d)
    for d in ("V", "T", "R", "tau", "packed"):
        assert (np.isnan(a[name][d][...]) == np.isnan(b[name][d][...])).all(), (name, d)
assert (a["a/status"][...] == b["a/status"][...]).all()
assert (b["a/sign"][1:4] == 0).all()
P
done

# kills in every part of it, then on with another number of ranks
"$FUGU" gen k.h5 -q --seed 8 --add gaussian:24x24x200:d --add gaussian:700x650x3:d
expect 0 "$FUGU" qr k.h5 -o k-one.h5 --scalapack 0
qr=("$FUGU" qr k.h5 -o k-out.h5 "${huge[@]}" -q)
killed() { # RANKS FAULT
    rm -f k-out.h5*
    FUGU_FAULT=$2 expect 137 "${run[@]}" "$1" "${qr[@]}"
    absent k-out.h5
}
# Rank 1 reads 5 rectangles of a huge matrix and writes 10; either rank has done the one unit of
# small ones. Rank 0 makes the records.
for fault in read:8:kill:1 factor:2:kill:1 data:18:kill:1 sync:2:kill:1 between:3:kill:0 \
    append:3:kill:0 commit:4:kill:0 finish:1:kill:0; do
    killed 2 $fault
    expect 0 "${run[@]}" 3 "${qr[@]}" --resume
    expect 0 "$FUGU" verify k.h5 k-out.h5
    compare k-one.h5 k-out.h5
    absent k-out.h5.part
done
killed 2 between:3:kill:0
expect 0 "${run[@]}" 3 "${qr[@]}" --resume --verify-full
grid k-out.h5 gaussian_700x650_d '2x1, blocks of 64; 3x1, blocks of 64'
killed 2 between:3:kill:0
expect 3 "${run[@]}" 2 "${qr[@]}" --resume --memory 100M
one_fugu_line 'begun with "datasets beyond --memory = 1 .*now it is "datasets beyond --memory = 0'

# one rank's failure ends all with its message, and what is done stays
for fault in read:8:EIO:1 factor:2:ENOMEM:1 data:18:ENOSPC:1 sync:2:EIO:1; do
    rm -f k-out.h5*
    FUGU_FAULT=$fault expect 3 "${run[@]}" 2 "${qr[@]}"
    one_fugu_line 'units are done and kept: use --resume'
    expect 0 "${run[@]}" 2 "${qr[@]}" --resume
    compare k-one.h5 k-out.h5
done
rm -f k-out.h5*
aside=("$FUGU" qr k.h5 -o k-out.h5 "${huge[@]}" --resume --dataset '*700*')
for _ in 1 2; do
    FUGU_FAULT=factor:1:abort:1 expect 134 "${run[@]}" 2 "${aside[@]}"
done
expect 1 "${run[@]}" 2 "${aside[@]}"
says out.txt '700x650_d\[0\] was set aside'
expect 1 "$FUGU" verify k.h5 k-out.h5
says out.txt '700x650_d\[0\]: was set aside'
says out.txt '3 matrices looked at, 2 passed, 1 failed'

# stops come between two matrices
rm -f k-out.h5*
touch halt
expect 75 "${run[@]}" 2 "${qr[@]}" --stop-file halt
expect 75 "${run[@]}" 2 "${qr[@]}" --max-time 0 --overwrite
one_fugu_line 'stopped by --max-time'
rm -f k-out.h5* halt
FUGU_FAULT=sync:700:slow "${run[@]}" 2 "${qr[@]}" --stop-file halt >out.txt 2>err.txt &
pid=$!
for _ in $(seq 600); do # a record of the huge phase: the second of rank 0 and 1 together
    sizes=$(cat k-out.h5.part.journal.1.? 2>/dev/null | wc -c)
    first=${first:-$([ "$sizes" -gt 0 ] && cat k-out.h5.part.journal.1.? | wc -c)}
    [ -n "$first" ] && [ "$sizes" -gt $((first + 32)) ] && break
    sleep 0.02
done
touch halt
code=0 last="a stop file in the huge phase"
wait $pid || code=$?
cases=$((cases + 1))
[ $code -eq 75 ] || complain "exit $code, expected 75"
one_fugu_line 'stopped by .*units are done and kept'
expect 0 "${run[@]}" 2 "${qr[@]}" --resume
compare k-one.h5 k-out.h5

# shards: each factors its own alone
rm -f k-out.h5*
for i in 2 1; do
    expect 0 timeout 300 "$FUGU" qr k.h5 -o k-out.h5 --memory 7M --unit-size 1M --shard $i/2 -q
done
expect 0 "$FUGU" verify k.h5 k-out.h5
compare k-one.h5 k-out.h5
grid k-out.h5 gaussian_700x650_d '1x1, blocks of 64'

# a process that no launcher started does the same; refusals name what is needed
expect 0 timeout 300 "$FUGU" qr k.h5 -o alone.h5 --memory 7M --unit-size 1M --scalapack 0
says err.txt '^ *huge +3 '
compare k-one.h5 alone.h5
expect 3 timeout 300 "$FUGU" qr k.h5 -o no.h5 --memory 3M --unit-size 1M --scalapack 0 -q
one_line '700x650, d\) does not fit --memory 3145728 .*1 rank it takes [0-9]+ bytes'
says err.txt 'Give --memory [0-9]+, or [2-9] ranks under mpirun'
bytes=$(sed -n 's/.*Give --memory \([0-9]*\),.*/\1/p' err.txt)
ranks=$(sed -n 's/.*or \([0-9]*\) ranks under.*/\1/p' err.txt)
absent no.h5.part
no=("$FUGU" qr k.h5 -o no.h5 --overwrite --unit-size 1M --scalapack 0 -q --memory)
expect 3 timeout 300 "${no[@]}" $((bytes - 1))
expect 0 timeout 300 "${no[@]}" "$bytes"
expect 3 "${run[@]}" $((ranks - 1)) "${no[@]}" 3M
expect 0 "${run[@]}" "$ranks" "${no[@]}" 3M
compare k-one.h5 no.h5
expect 0 "${run[@]}" 2 "$FUGU" qr k.h5 --dry-run "${huge[@]}"
says out.txt '^rank .* huge'
says out.txt '^1 .* 3$'
finish
