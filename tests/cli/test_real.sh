#!/bin/bash
# Nine real matrices (Harwell-Boeing collection), where the data folder is there: all gates, and a
# reader that has only h5py and NumPy rebuilds every A from V, T and R.
data=$(realpath "$(dirname "$0")")/../../../shared/data/harwell_boeing.h5
. "$(dirname "$0")/lib.sh"
if [ ! -r "$data" ]; then
    echo "skipped: ../shared/data/harwell_boeing.h5 is not there"
    exit 77
fi
if ! /usr/bin/python3 -c 'import h5py' 2>/dev/null; then
    echo "skipped: python3-h5py is not installed"
    exit 77
fi
expect 0 mpirun -n 2 "$FUGU" qr "$data" -o out.h5 --check full
says out.txt 'tiny .* 4 .*2/2 agree'
expect 0 "$FUGU" verify "$data" out.h5
says out.txt '9 matrices looked at, 9 passed, 0 failed'
expect 0 /usr/bin/python3 - "$data" <<'PY'
import sys, h5py, numpy as np

u, seen = 2.0 ** -53, 0
def rebuild(V, T, R):
    """Q R with Q = product over blocks of (I - V_p T_p V_p^H), in extended precision."""
    wide = np.clongdouble if np.iscomplexobj(V) else np.longdouble
    V, T, X = V.astype(wide), T.astype(wide), np.zeros((V.shape[0], R.shape[1]), wide)
    X[: R.shape[0]] = R
    nb, k = T.shape
    for p in reversed(range(0, k, nb)):
        w = min(nb, k - p)
        X -= V[:, p:p + w] @ (T[:w, p:p + w] @ (V[:, p:p + w].conj().T @ X))
    return X

with h5py.File(sys.argv[1]) as a, h5py.File("out.h5") as o:
    for name, A in a["hb"].items():
        g = o["hb"][name]
        E = A[()] - rebuild(g["V"][()], g["T"][()], g["R"][()])
        norm = lambda x, **axis: np.sqrt((abs(x.astype(np.clongdouble)) ** 2).sum(**axis))
        columns = norm(A[()], axis=0)
        assert norm(E) <= 16 * u * norm(A[()]), name
        assert (norm(E, axis=0) <= 32 * u * columns).all(), name
        assert g["status"][()] == 1, name
        seen += 1
assert seen == 9
PY
finish
