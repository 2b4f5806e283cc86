#!/bin/bash
# fugu csyrk: every option against NumPy, shapes and names of the result, refusals, runs that end
# early.
. "$(dirname "$0")/lib.sh"

expect 0 "$FUGU" gen a.h5 -q --add gaussian:64x48x200:c --add gaussian:7x5x9:z:name=g/x \
    --add gaussian:20x20x3:d
expect 0 "$FUGU" csyrk a.h5 -o c.h5 --mirror
says out.txt '^wrote c\.h5: 3 datasets, 212 matrices, 0 with NaN or Inf, .*backend cpu\)'
expect 0 "$FUGU" info c.h5
says out.txt '/g/x +\(9, 7, 7\) +z +9'
says out.txt '/gaussian_20x20_d +\(3, 20, 20\) +d'
expect 0 "$FUGU" csyrk a.h5 -o one.h5 -q --mirror --threads 1
same c.h5 one.h5
expect 0 mpirun -n 2 "$FUGU" csyrk a.h5 -o ranks.h5 -q --mirror
same c.h5 ranks.h5

# refused before anything is written
expect 3 "$FUGU" csyrk a.h5 -o c.h5
one_line 'c\.h5 exists'
expect 2 "$FUGU" csyrk a.h5
one_line 'no output named'
expect 2 "$FUGU" csyrk a.h5 -o d.h5 --alpha 1,2
one_line 'a\.h5: /gaussian_20x20_d: a real matrix wants real --alpha'
expect 2 "$FUGU" csyrk a.h5 -o d.h5 -d '*_c' --hermitian --beta 0,1 --c c.h5
one_line '--hermitian wants real'
expect 2 "$FUGU" csyrk a.h5 -o d.h5 --hermitian --trans T
one_line '--hermitian goes with --trans N or C'
for value in x 1,x 1,2,3 ,1 '1 2' ''; do
    expect 2 "$FUGU" csyrk a.h5 -o d.h5 --alpha "$value"
    one_line '--alpha .*RE or RE,IM'
done
expect 2 "$FUGU" csyrk a.h5 -o d.h5 --beta 1
one_line 'name its file with --c'
expect 3 "$FUGU" csyrk a.h5 -o d.h5 --c a.h5 --beta 2
one_line '/g/x holds 9 matrices of 7x5 \(z\), but .* needs 9 of 7x7 \(z\)'
expect 0 "$FUGU" gen few.h5 -q --add gaussian:64x64x200:c:name=gaussian_64x48_c
expect 3 "$FUGU" csyrk a.h5 -o d.h5 --c few.h5
one_line 'few\.h5: it has no matrices named /g/x'
expect 3 "$FUGU" csyrk missing.h5 -o d.h5
one_line 'missing\.h5: there is no such file'
expect 3 "$FUGU" csyrk a.h5 -o a.h5 --overwrite
one_line 'is the input'
expect 3 "$FUGU" csyrk a.h5 -o c.h5 --c c.h5 --overwrite
one_line 'is the input'
absent d.h5
absent d.h5.part

# what cannot be finished leaves no file that looks whole
expect 0 "$FUGU" gen big.h5 -q --add gaussian:64x64x4000:c
expect 3 bash -c "ulimit -f 20000; exec '$FUGU' csyrk big.h5 -o d.h5"
absent d.h5
"$FUGU" csyrk big.h5 -o d.h5 --threads 1 >/dev/null 2>&1 &
for ((i = 0; i < 500; i++)); do
    [ ! -e d.h5.part ] || break
    sleep 0.01
done
kill -9 $! && wait $! 2>/dev/null
absent d.h5
expect 0 "$FUGU" csyrk big.h5 -o d.h5 -q --overwrite
absent d.h5.part

# NaN comes out where it belongs, and is counted
expect 0 "$FUGU" gen n.h5 -q --add nan:6x6x2:s --add gaussian:6x6x3:s
expect 1 "$FUGU" csyrk n.h5 -o nc.h5
says out.txt '5 matrices, 2 with NaN or Inf'

if ! /usr/bin/python3 -c 'import h5py' 2>/dev/null; then
    echo "skipped: the comparison with NumPy: python3-h5py is not installed"
    finish
fi
/usr/bin/python3 - <<'PY'
import h5py, numpy as np

r = np.random.default_rng(3)
with h5py.File("in.h5", "w") as a, h5py.File("old.h5", "w") as c, h5py.File("oldt.h5", "w") as t:
    for name, shape in (("s", (3, 2, 9, 17)), ("d", (1, 33, 20)), ("c", (2, 40, 31)),
                        ("z", (5, 3)), ("wide/c", (50, 3, 9))):
        kind = {"s": "f4", "d": "f8", "c": "c8", "z": "c16"}[name[-1]]
        make = lambda *s: (r.standard_normal(s) + 1j * r.standard_normal(s)).astype(kind) \
            if kind[0] == "c" else r.standard_normal(s).astype(kind)
        packed = {"chunks": (7, 3, 9), "compression": "gzip"} if name == "wide/c" else {}
        a.create_dataset(name, data=make(*shape), **packed)
        c[name] = make(*shape[:-1], shape[-2])
        t[name] = make(*shape[:-2], shape[-1], shape[-1])
    a["words"] = "no numbers"
PY
cat >check.py <<'PY'
import h5py, numpy as np, sys

trans, uplo, hermitian, mirror, alpha, beta, old = sys.argv[1:]
hermitian, mirror = int(hermitian), int(mirror)
alpha, beta = (complex(*map(float, x.split(","))) for x in (alpha, beta))
with h5py.File("in.h5") as a, h5py.File("out.h5") as o:
    names = [n for n in ("s", "d", "c", "z", "wide/c") if n in o]
    assert names, "the output has no results"
    assert all(n in o for n in ("c", "z", "wide/c"))
    for n in names:
        x = a[n][...].astype(complex)
        x = x if trans == "N" else np.swapaxes(x, -1, -2)
        if hermitian and trans == "C":
            x = x.conj()
        full = alpha * (x @ np.swapaxes(x.conj() if hermitian else x, -1, -2))
        before = np.zeros(full.shape)
        if old != "none":
            with h5py.File(old) as c:
                before = c[n][...].astype(complex)
        full = full + beta * before
        part = (np.tril if uplo == "lower" else np.triu)(np.ones(full.shape[-2:]))
        if hermitian:
            full = full - 1j * np.imag(full) * np.eye(full.shape[-1])
        want = np.where(part, full, before)
        if mirror:
            other = np.swapaxes(full.conj() if hermitian else full, -1, -2)
            want = np.where(part, full, other)
        got = o[n][...]
        assert got.dtype == a[n].dtype, (n, got.dtype)
        assert got.shape == want.shape, (n, got.shape, want.shape)
        u = 2.0 ** -(24 if got.dtype in (np.float32, np.complex64) else 53)
        scale = abs(alpha) * np.linalg.norm(x) ** 2 + 2 * abs(beta) * np.linalg.norm(before)
        off = np.linalg.norm(got - want)
        assert off <= 8 * u * scale, (n, off / scale / u)
        if not mirror:
            assert np.array_equal(got[..., part == 0], before.astype(got.dtype)[..., part == 0]), n
PY
# against OPTIONS... TRANS UPLO HERMITIAN MIRROR ALPHA BETA OLD
against() {
    local more=()
    [ "$3" = 0 ] || more+=(--hermitian)
    [ "$4" = 0 ] || more+=(--mirror)
    [ "$7" = none ] || more+=(--c "$7")
    [[ $5$6 == *,0*,0 ]] || more+=(-d '*c' -d z)
    expect 0 "$FUGU" csyrk in.h5 -o out.h5 -q --overwrite --trans "$1" --uplo "$2" --alpha "$5" \
        --beta "$6" "${more[@]}"
    expect 0 /usr/bin/python3 check.py "$@"
}
for uplo in lower upper; do
    against N $uplo 0 0 1,0 0,0 none
    against T $uplo 0 1 0.5,-2 0,0 none
    against C $uplo 0 0 2,1 0.25,1 oldt.h5
    against N $uplo 1 0 2,0 -1,0 old.h5
    against C $uplo 1 1 1,0 0,0 none
    against C $uplo 1 0 -1,0 3,0 oldt.h5
    against N $uplo 0 1 1,1 1,0 old.h5
    against N $uplo 0 0 0,0 1,0 old.h5
    against N $uplo 0 0 1,0 0,0 old.h5
done
finish
