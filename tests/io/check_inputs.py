#!/usr/bin/python3
"""check_inputs.py [DUMP_CATALOG]: every input that make_inputs.py makes, read by dump_catalog
(default build/dump_catalog) and compared bit for bit with what NumPy says, every refusal with its
message. One line a case; exit 1 when one fails, 77 when h5py is missing."""
import json
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))


def bits_differ(got, want, dtype):
    """None or where two arrays differ; NaNs are equal whatever their payload."""
    if got == want:
        return None
    import numpy as np
    kind = {"s": "f4", "d": "f8", "c": "f4", "z": "f8"}[dtype]
    if len(got) != len(want):
        return f"{len(got)} bytes instead of {len(want)}"
    a, b = np.frombuffer(got, kind), np.frombuffer(want, kind)
    same = (a.view("u" + kind[1:]) == b.view("u" + kind[1:])) | (np.isnan(a) & np.isnan(b))
    if same.all():
        return None
    at = int(np.argmin(same))
    return f"number {at} is {a[at]!r} instead of {b[at]!r} ({int((~same).sum())} differ)"


def problems(case, folder, tool, dump):
    """Everything that is not as the case says."""
    options = [a for a in case["args"] if not a.startswith("/") and "*" not in a]
    patterns = [a for a in case["args"] if a not in options]
    run = subprocess.run([tool, *options, case["file"], dump, *patterns], cwd=folder,
                         capture_output=True, text=True, timeout=60, check=False)
    lines = [line.split("\t") for line in run.stdout.splitlines()]
    if run.stderr:
        yield f"wrote to stderr: {run.stderr[:200]!r}"
    if case["status"]:
        last = run.stdout.splitlines()[-1] if run.stdout else ""
        if not last.startswith(f"error {case['status']} ") or case["message"] not in last:
            yield f"expected status {case['status']}, '{case['message']}'; got '{last}'"
        return
    if run.returncode:
        yield f"exit {run.returncode}: {run.stdout[-400:]}"
        return
    found = {line[1]: line for line in lines if line[0] == "dataset"}
    if list(found) != sorted(case["datasets"], key=lambda p: p.split("/")):
        yield f"datasets {list(found)} instead of {sorted(case['datasets'])}"
        return
    with open(dump, "rb") as f:
        data = f.read()
    at = 0
    for path, line in found.items():
        want = case["datasets"][path]
        with open(os.path.join(folder, want["dump"]), "rb") as f:
            expected = f.read()
        if line[2] != want["dtype"] or line[3] != ",".join(map(str, want["shape"])):
            yield f"{path}: {line[2:4]} instead of {want['dtype'], want['shape']}"
        fault = bits_differ(data[at:at + len(expected)], expected, want["dtype"])
        if fault:
            yield f"{path}: {fault}"
        at += len(expected)
        access = case["access"].get(path)
        if access and not " ".join(line[4:7]).startswith(access):
            yield f"{path}: access {line[4:7]} instead of {access}"
        aliases = case["aliases"].get(path)
        if aliases is not None and line[8].split() != aliases:
            yield f"{path}: other names {line[8]!r} instead of {aliases}"
    if at != len(data):
        yield f"{len(data) - at} bytes too many were read"
    for kind, wanted in (("note", case["notes"]), ("warning", case["warnings"])):
        notes = {line[1]: line[2] for line in lines if line[0] == kind}
        for path, part in wanted.items():
            if path not in notes or part not in notes[path]:
                yield f"{kind} on {path}: {notes.get(path)!r}, expected '{part}'"


def main():
    try:
        import h5py  # noqa: F401
    except ImportError:
        print("skipped: python3-h5py is not installed")
        return 77
    tool = os.path.abspath(sys.argv[1] if len(sys.argv) > 1 else "build/dump_catalog")
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([sys.executable, os.path.join(HERE, "make_inputs.py"), folder], check=True)
        with open(os.path.join(folder, "cases.json"), encoding="utf-8") as f:
            cases = json.load(f)
        for case in cases:
            bad = list(problems(case, folder, tool, os.path.join(folder, "dump")))
            failed += bool(bad)
            print(f"{'FAILED' if bad else 'ok'} {case['name']}")
            for text in bad:
                print(f"    {text}")
    print(f"{len(cases) - failed} passed, {failed} failed, 0 skipped")
    return 1 if failed or not cases else 0


if __name__ == "__main__":
    sys.exit(main())
