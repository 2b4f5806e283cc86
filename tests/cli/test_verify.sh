#!/bin/bash
# verify finds one changed number in V, T, tau or R and names dataset and index; wrong pairs of
# files are refused.
. "$(dirname "$0")/lib.sh"
if ! /usr/bin/python3 -c 'import h5py' 2>/dev/null; then
    echo "skipped: python3-h5py is not installed"
    exit 77
fi
"$FUGU" gen in.h5 -q --add gaussian:40x24x30:d:name=g/A --add gaussian:20x30x10:c:name=g/B \
    --add nan:6x6x2:s:name=g/N
expect 1 "$FUGU" qr in.h5 -o out.h5 --json out.json
expect 0 "$FUGU" verify in.h5 out.h5
says out.txt '42 matrices looked at, 42 passed, 0 failed; 2 of them not finite'
cases=$((cases + 1))
last="/usr/bin/python3 reads out.json"
/usr/bin/python3 - <<'PY' || complain "out.json is not what it should be"
import json
j = json.load(open("out.json"))
assert j["schema_version"] == 1 and j["exit_code"] == 1 and j["bad_matrices"] == 2
assert sum(b["matrices"] for b in j["buckets"]) == 42
assert j["bad_listed"][0]["dataset"] == "/g/N"
assert all(b["scalapack"]["agreed"] == b["scalapack"]["checked"] > 0 for b in j["buckets"])
PY

# change KIND MATRIX i j: one entry by 2^10 u (of R: of its column's norm)
change() {
    cp out.h5 changed.h5
    /usr/bin/python3 - "$@" <<'PY'
import sys, h5py, numpy as np
name, b, i, j = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])
with h5py.File("changed.h5", "r+") as f:
    d = f[name]
    x = d[b]
    u = 2.0 ** (-24 if x.dtype.itemsize == 8 and x.dtype.kind == "c" else -53)
    at = (i,) if x.ndim == 1 else (i, j)
    scale = np.linalg.norm(x[:, j]) if name.endswith("R") else max(abs(x[at]), 0.5)
    x[at] += 2.0 ** 10 * u * scale
    d[b] = x
PY
}
while read -r name b i j; do
    change "$name" "$b" "$i" "$j"
    expect 1 "$FUGU" verify in.h5 changed.h5
    says out.txt "^FAILED ${name%/*}\[$b\]: "
    says out.txt ', 1 failed'
done <<'END'
/g/A/V 3 30 5
/g/A/V 29 1 0
/g/A/V 0 0 0
/g/A/V 7 2 9
/g/A/T 11 2 7
/g/A/T 12 20 3
/g/A/tau 17 23 0
/g/A/R 5 3 20
/g/A/R 6 0 0
/g/A/R 8 20 3
/g/B/V 2 10 3
/g/B/T 1 0 4
/g/B/tau 9 0 0
/g/B/R 4 2 29
/g/B/R 4 19 19
END
# a status that does not hold, a NaN in a result
cp out.h5 changed.h5
/usr/bin/python3 -c 'import h5py; h5py.File("changed.h5","r+")["g/A/status"][4] = 3'
expect 1 "$FUGU" verify in.h5 changed.h5
says out.txt '^FAILED /g/A\[4\]: '
cp out.h5 changed.h5
/usr/bin/python3 -c 'import h5py,math; h5py.File("changed.h5","r+")["g/A/R"][4,2,3] = math.nan'
expect 1 "$FUGU" verify in.h5 changed.h5
says out.txt '^FAILED /g/A\[4\]: '
cp out.h5 changed.h5
/usr/bin/python3 -c 'import h5py; h5py.File("changed.h5","r+").attrs["complete"] = 0'
expect 1 "$FUGU" verify in.h5 changed.h5
says out.txt 'not complete'
expect 0 "$FUGU" info changed.h5
says out.txt 'NOT COMPLETE'
# edit CODE: a copy of out.h5 with something done to it
edit() {
    cp out.h5 changed.h5
    /usr/bin/python3 -c "import h5py, numpy as np
f = h5py.File('changed.h5', 'a')
$1"
}
while read -r code message edit; do
    edit "$edit"
    expect "$code" "$FUGU" verify in.h5 changed.h5
    says "$([ "$code" = 1 ] && echo out.txt || echo err.txt)" "${message//_/ }"
done <<'END'
3 holds_2_of_3 del f['g/A']
3 fugu del f['g/A'].attrs['fugu']
3 g/A/R del f['g/A/R']
3 g/A/metrics del f['g/A/metrics']
3 metrics del f['g/A/metrics']; f['g/A/metrics'] = np.ones((30, 1000))
1 does_not_hold f['g/A/status'][:] = 6
1 not_a_value f['g/A/status'][3] = 7
1 not_computed f['g/A/status'][3] = 0
1 not_NaN f['g/N/R'][1] = 1
END
edit "del f['g/A/metrics']; f['g/A/metrics'] = np.ones((30, 1000))"
expect 3 "$FUGU" info changed.h5
expect 1 "$FUGU" qr in.h5 -o packed.h5 -q --outputs V,T,R,tau,packed
cp packed.h5 changed.h5
/usr/bin/python3 -c 'import h5py; h5py.File("changed.h5", "a")["g/A/packed"][2, 7, 3] = 5'
expect 1 "$FUGU" verify in.h5 changed.h5
says out.txt '^FAILED /g/A\[2\]: packed and V differ'
cp packed.h5 changed.h5
/usr/bin/python3 -c 'import h5py; h5py.File("changed.h5", "a")["g/N/packed"][1, 0, 0] = 5'
expect 1 "$FUGU" verify in.h5 changed.h5
says out.txt '^FAILED /g/N\[1\]: .*not NaN'
expect 1 "$FUGU" qr in.h5 -o tau.h5 -q --outputs tau
expect 3 "$FUGU" verify in.h5 tau.h5
one_line 'neither R nor packed'
expect 0 "$FUGU" qr in.h5 -o some.h5 -q --dataset '/g/B'
expect 0 "$FUGU" verify in.h5 some.h5
says out.txt '^2 datasets of in.h5 without results'
# names in the order of their components
"$FUGU" gen names.h5 -q --add gaussian:3x3x2:d:name=a/x --add gaussian:3x3x2:d:name=a-b \
    --add gaussian:3x3x2:d:name=a.b/c
expect 0 "$FUGU" qr names.h5 -o names-qr.h5 -q
expect 0 "$FUGU" verify names.h5 names-qr.h5
# the summary never lands on the data
cp in.h5 in2.h5
expect 3 "$FUGU" qr in2.h5 -o out2.h5 --json in2.h5
same in.h5 in2.h5
expect 3 "$FUGU" qr in.h5 -o out2.h5 --json out2.h5
absent out2.h5
# files that do not belong together
"$FUGU" gen other.h5 -q --add gaussian:40x24x31:d:name=g/A --add gaussian:20x30x10:c:name=g/B \
    --add nan:6x6x2:s:name=g/N
expect 3 "$FUGU" verify other.h5 out.h5
one_line '/g/A'
expect 3 "$FUGU" verify in.h5 in.h5
one_line 'in\.h5'
# every choice of outputs can be verified; signs
for o in R V,tau,R V,T,R packed,tau packed,T V,T,R,tau,packed; do
    expect 1 "$FUGU" qr in.h5 -o out2.h5 --overwrite -q --outputs $o
    expect 0 "$FUGU" verify in.h5 out2.h5
done
expect 1 "$FUGU" qr in.h5 -o out2.h5 --overwrite -q --positive-diagonal
expect 0 "$FUGU" verify in.h5 out2.h5
for c in norms probe full none; do
    expect 1 "$FUGU" qr in.h5 -o out2.h5 --overwrite -q --check $c
    expect 0 "$FUGU" verify in.h5 out2.h5
done
expect 0 "$FUGU" verify in.h5 out2.h5 --sample 3
says out.txt '^8 matrices looked at'
expect 0 "$FUGU" verify in.h5 out2.h5 --sample 25
says out.txt '^37 matrices looked at'
finish
