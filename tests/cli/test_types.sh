#!/bin/bash
# Every stored type through several units: widened, swapped, chunked and compressed input gives the
# same results as the same numbers stored plainly.
. "$(dirname "$0")/lib.sh"
if ! /usr/bin/python3 -c 'import h5py' 2>/dev/null; then
    echo "skipped: python3-h5py is not installed"
    exit 77
fi
/usr/bin/python3 - <<'PY'
import h5py, numpy as np

r = np.random.default_rng(5)
plain, odd = h5py.File("plain.h5", "w"), h5py.File("odd.h5", "w")
for name in "i1 u1 >i2 u2 i4 >u4 i8 f2 >f2 f4 >f4 f8 >f8 bool c8 >c8 c16".split():
    t = np.dtype(name)
    for m, n in ((20, 20), (7, 3)):
        a = r.integers(0, 100, (200, m, n)) if t.kind in "iub" else r.standard_normal((200, m, n))
        if t.kind == "c":
            a = a + 1j * r.standard_normal(a.shape)
        a = (a > 50 if t.kind == "b" else a).astype(t)
        wide = "f8" if t.kind in "iub" else "f4" if t.itemsize == 2 else t.newbyteorder("=")
        key = f"{name.replace('>', 'big_')}_{m}x{n}"
        plain[key] = a.astype(wide)
        packed = {"chunks": (17, m, n), "compression": "gzip"} if m == 7 else {}
        odd.create_dataset(key, data=a, **packed)
PY
expect 0 "$FUGU" qr plain.h5 -o plain-qr.h5 -q
for s in 64M 1M 64K 1K; do
    expect 0 "$FUGU" qr odd.h5 -o odd-qr.h5 -q --overwrite --unit-size $s
    expect 0 /usr/bin/python3 - <<'PY'
import h5py, numpy as np
a, b, seen = h5py.File("plain-qr.h5"), h5py.File("odd-qr.h5"), 0
for name in a:
    for kind in ("V", "T", "R", "tau", "status"):
        assert a[name][kind][()].tobytes() == b[name][kind][()].tobytes(), (name, kind)
        seen += 1
assert seen == 170
PY
done
expect 0 mpirun -n 3 "$FUGU" qr odd.h5 -o odd3-qr.h5 -q --unit-size 64K
same odd-qr.h5 odd3-qr.h5
expect 0 "$FUGU" verify odd.h5 odd-qr.h5
finish
