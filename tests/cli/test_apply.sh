#!/bin/bash
# fugu apply: Q itself and products with it against NumPy, refusals, runs that end early.
. "$(dirname "$0")/lib.sh"

expect 0 "$FUGU" gen a.h5 -q --add gaussian:64x48x100:c --add gaussian:7x5x9:z:name=g/x \
    --add gaussian:20x30x3:d
expect 0 "$FUGU" qr a.h5 -o qr.h5 -q
expect 0 "$FUGU" apply qr.h5 -o q.h5
says out.txt '^wrote q\.h5: 3 datasets, 112 matrices, 0 with NaN or Inf'
expect 0 "$FUGU" info q.h5
says out.txt '/g/x +\(9, 7, 5\) +z +9'
says out.txt '/gaussian_20x30_d +\(3, 20, 20\) +d'
expect 0 "$FUGU" apply qr.h5 -o one.h5 -q --threads 1
same q.h5 one.h5
expect 0 "$FUGU" qr a.h5 -o packed.h5 -q --outputs packed,T
expect 0 "$FUGU" apply packed.h5 -o q2.h5 -q
same q.h5 q2.h5
# R comes back: Q^H A.
expect 0 "$FUGU" apply qr.h5 a.h5 -o r.h5 -q --trans C

# refused before anything is written
expect 2 "$FUGU" apply qr.h5
one_line 'no output named'
expect 2 "$FUGU" apply qr.h5 -o x.h5 --trans C
one_line 'name its file'
expect 2 "$FUGU" apply qr.h5 a.h5 -o x.h5 --full
one_line '--full is for Q itself'
expect 3 "$FUGU" apply a.h5 -o x.h5
one_line 'a\.h5 is not an output of fugu qr'
expect 3 "$FUGU" apply qr.h5 a.h5 -o x.h5 --side right
one_line '/g/x holds 9 matrices of 7x5 \(z\), but /g/x of qr\.h5 has 9 of 7x5 .*Q is 7x7.* 7 col'
expect 0 "$FUGU" gen few.h5 -q --add gaussian:7x5x9:z:name=g/x
expect 3 "$FUGU" apply qr.h5 few.h5 -o x.h5
one_line 'few\.h5: it has no matrices named /gaussian_20x30_d'
expect 0 "$FUGU" gen type.h5 -q --add gaussian:7x5x9:c:name=g/x --add gaussian:64x4x1:c \
    --add gaussian:20x3x3:d:name=gaussian_20x30_d --add gaussian:64x3x100:c:name=gaussian_64x48_c
expect 3 "$FUGU" apply qr.h5 type.h5 -o x.h5
one_line 'type\.h5: /g/x holds .*\(c\), but'
expect 0 "$FUGU" qr a.h5 -o r-only.h5 -q --outputs R
expect 3 "$FUGU" apply r-only.h5 -o x.h5
one_line 'has not both V .* and T'
expect 3 "$FUGU" apply qr.h5 -o qr.h5 --overwrite
one_line 'is the input'
expect 3 "$FUGU" apply qr.h5 a.h5 -o a.h5 --overwrite
one_line 'is the input'
expect 3 "$FUGU" apply qr.h5 -o q.h5
one_line 'q\.h5 exists'
expect 3 bash -c "ulimit -f 100; exec '$FUGU' apply qr.h5 -o x.h5"
absent x.h5
absent x.h5.part

# a matrix without a factorisation has no product, and touches no other
expect 0 "$FUGU" gen n.h5 -q --add nan:6x6x2:s --add gaussian:6x6x3:s
expect 1 "$FUGU" qr n.h5 -o nq.h5 -q
expect 1 "$FUGU" apply nq.h5 -o x.h5
says out.txt '5 matrices, 2 with NaN or Inf'

if ! /usr/bin/python3 -c 'import h5py' 2>/dev/null; then
    echo "skipped: the comparison with NumPy: python3-h5py is not installed"
    finish
fi
cat >check.py <<'PY'
import h5py, numpy as np, sys

full, b_path, side, trans, out = sys.argv[1:]
with h5py.File("a.h5") as a, h5py.File("qr.h5") as f, h5py.File(out) as o:
    for n in ("gaussian_64x48_c", "g/x", "gaussian_20x30_d"):
        A, got = a[n][...], o[n][...]
        m, k = A.shape[1], min(A.shape[1:])
        u = 2.0 ** -(24 if A.dtype == np.complex64 else 53)
        V, T = (f[n][x][...].astype(complex) for x in ("V", "T"))
        Q = np.broadcast_to(np.eye(m, dtype=complex), (len(A), m, m))
        for p in range(0, k, T.shape[1]):
            v, t = V[..., p:p + T.shape[1]], T[..., p:p + T.shape[1]]
            t = t[..., :t.shape[-1], :]
            Q = Q - (Q @ v) @ t @ np.swapaxes(v.conj(), -1, -2)
        if b_path == "none":
            want = Q if int(full) else Q[..., :k]
        else:
            with h5py.File(b_path) as b:
                B = b[n if n in b else "B"][...].astype(complex)
            q = np.swapaxes(Q.conj(), -1, -2) if trans == "C" else Q
            want = q @ B if side == "left" else B @ q
        assert got.dtype == A.dtype and got.shape == want.shape, (n, got.shape, want.shape)
        assert np.linalg.norm(got - want) <= 30 * u * np.sqrt(m) * np.linalg.norm(want), n
PY
/usr/bin/python3 - <<'PY'
import h5py, numpy as np

r = np.random.default_rng(4)
with h5py.File("right.h5", "w") as f:
    for n, m, count, t in (("gaussian_64x48_c", 64, 100, "c8"), ("g/x", 7, 9, "c16"),
                           ("gaussian_20x30_d", 20, 3, "f8")):
        x = r.standard_normal((count, 3, m)) + 1j * r.standard_normal((count, 3, m))
        f[n] = x.astype(t) if t[0] == "c" else x.real
PY
expect 0 /usr/bin/python3 check.py 0 none left N q.h5
expect 0 "$FUGU" apply qr.h5 -o full.h5 -q --full
expect 0 /usr/bin/python3 check.py 1 none left N full.h5
expect 0 /usr/bin/python3 check.py 0 a.h5 left C r.h5
expect 0 "$FUGU" apply qr.h5 a.h5 -o qa.h5 -q
expect 0 /usr/bin/python3 check.py 0 a.h5 left N qa.h5
for trans in N C; do
    expect 0 "$FUGU" apply qr.h5 right.h5 -o rq.h5 -q --side right --trans $trans --overwrite
    expect 0 /usr/bin/python3 check.py 0 right.h5 right $trans rq.h5
done
# one B for all matrices
expect 0 "$FUGU" gen m.h5 -q --add gaussian:9x6x20:d --add gaussian:9x9x4:d
expect 0 "$FUGU" qr m.h5 -o mq.h5 -q
expect 0 "$FUGU" gen b.h5 -q --add gaussian:9x2x1:d:name=B
expect 0 "$FUGU" apply mq.h5 b.h5 -o mb.h5 -q
expect 0 "$FUGU" apply mq.h5 mb.h5 -o back.h5 -q --trans C
expect 0 /usr/bin/python3 - <<'PY'
import h5py, numpy as np

with h5py.File("b.h5") as b, h5py.File("back.h5") as o:
    for n, count in (("gaussian_9x6_d", 20), ("gaussian_9x9_d", 4)):
        got = o[n][...]
        assert got.shape == (count, 9, 2), got.shape
        assert np.abs(got - b["B"][...]).max() < 1e-14
PY
finish
