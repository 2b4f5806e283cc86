#!/usr/bin/env python3
"""Measures `fugu qr` from file to file, and sets it against what bounds it.

Makes a file of 64 x 64 float64 matrices, reads it once so that it is in the page cache, factors it,
and prints the wall time, what each stage did and waited, and the share of the time that is not
reading, computing or writing. Beside it: plain reads and writes of as many bytes; the time that
fugu bench needs to factor as many matrices, without files; and, when h5py and SciPy are there and
n <= 64, a loop over some of the matrices with LAPACK's geqrf. Its files are removed at the end.

Usage: bench_qr.py [--size 1G] [--n 64] [--ranks 1] [--threads 1] [--repeats 3] [--fugu build/fugu]
                   [--dir FOLDER] [-- options of fugu qr]
"""
import argparse
import csv
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time

BLOCK = 16 << 20
LOOP_MATRICES = 2000


def fail(message):
    sys.exit(f"bench_qr.py: {message}")


def size(text):
    scale = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}.get(text[-1:].upper(), 1)
    return int(float(text[:-1] if scale > 1 else text) * scale)


def arguments():
    parser = argparse.ArgumentParser(
        description="Measures fugu qr from file to file and sets it against what bounds it.")
    parser.add_argument("--size", type=size, default=1 << 30, help="bytes of input; default 1G")
    parser.add_argument("--n", type=int, default=64, help="matrices are n x n; default 64")
    parser.add_argument("--ranks", type=int, default=1, help="started with mpirun; default 1")
    parser.add_argument("--threads", type=int, default=1, help="of each rank; default 1")
    parser.add_argument("--repeats", type=int, default=3, help="runs; the median counts; default 3")
    parser.add_argument("--fugu", default="build/fugu", help="the program; default build/fugu")
    parser.add_argument("--dir", help="folder for the files; default: a new one in TMPDIR")
    parser.add_argument("qr", nargs="*", metavar="OPTION", help="after --: options of fugu qr")
    options = parser.parse_args()
    if min(options.n, options.ranks, options.threads, options.repeats) < 1:
        parser.error("--n, --ranks, --threads and --repeats are at least 1")
    options.fugu = shutil.which(os.path.abspath(options.fugu))
    if not options.fugu:
        fail("no program fugu there; make, or name it with --fugu")
    return options


def run(command):
    """Wall and processor seconds and the peak memory of a command and what it starts."""
    start = time.monotonic()
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as process:
        text = process.stdout.read().decode(errors="replace")
        _, code, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(code)
    wall = time.monotonic() - start
    if process.returncode != 0:
        fail(f"{' '.join(command)} ended with {process.returncode}:\n{text}")
    return {"wall": wall, "processor": usage.ru_utime + usage.ru_stime,
            "memory": usage.ru_maxrss * 1024}


def read_plainly(path):
    buffer = bytearray(BLOCK)
    start = time.monotonic()
    with open(path, "rb", buffering=0) as file:
        while file.readinto(buffer):
            pass
    return time.monotonic() - start


def write_plainly(path, count):
    """Seconds to write so many bytes and to have them on the disk, as fugu qr has its output."""
    block = os.urandom(BLOCK)
    start = time.monotonic()
    with open(path, "wb", buffering=0) as file:
        for at in range(0, count, BLOCK):
            file.write(memoryview(block)[:min(BLOCK, count - at)])
        os.fsync(file.fileno())
    seconds = time.monotonic() - start
    os.remove(path)
    return seconds


def factor_only(options, folder, matrices):
    """Seconds to factor as many matrices that come from memory, by fugu bench with the same
    threads on all ranks together; processor time when that is one."""
    path = os.path.join(folder, "bench.csv")
    run([options.fugu, "bench", "-q", "-t", "d", "-n", str(options.n), "--place", "stream",
         "--threads", str(options.ranks * options.threads), "--csv", path])
    with open(path, encoding="utf-8") as file:
        row = next(csv.DictReader(line for line in file if not line.startswith("#")))
    return matrices / float(row["matrices_per_s"])


def loop(source, target, matrices):
    """Seconds for one matrix of a loop with h5py and LAPACK's geqrf, which writes V, R and tau; a
    text when it cannot be had."""
    try:
        import h5py
        import numpy
        from scipy.linalg import lapack
    except ImportError as error:
        return f"not measured: {error}"
    count = min(LOOP_MATRICES, matrices)
    start = time.monotonic()
    with h5py.File(source, "r") as file, h5py.File(target, "w") as results:
        A = file["A"]
        n = A.shape[2]
        V, R = (results.create_dataset(name, (count, n, n), "f8") for name in "VR")
        tau = results.create_dataset("tau", (count, n), "f8")
        for i in range(count):
            packed, tau[i], _, _ = lapack.dgeqrf(A[i])
            V[i] = numpy.tril(packed, -1) + numpy.eye(n)
            R[i] = numpy.triu(packed)
    seconds = time.monotonic() - start
    os.remove(target)
    return seconds / count


def launcher(options):
    if options.ranks == 1:
        return []
    root = ["--allow-run-as-root"] if os.geteuid() == 0 else []
    return ["mpirun", *root, "-n", str(options.ranks), "--bind-to", "none", "--oversubscribe"]


def factor(options, source, target):
    """The runs, sorted by wall time; the summary of each among its figures."""
    summary = target + ".json"
    command = launcher(options) + [
        options.fugu, "qr", source, "-o", target, "--overwrite", "--scalapack", "0", "--threads",
        str(options.threads), "--progress", "none", "--json", summary, *options.qr]
    runs = []
    for _ in range(options.repeats):
        result = run(command)
        with open(summary, encoding="utf-8") as file:
            result["summary"] = json.load(file)
        result["bytes"] = os.path.getsize(target)
        runs.append(result)
        os.remove(target)
    return sorted(runs, key=lambda r: r["wall"])


def line(name, seconds, remark=""):
    print(f"{name:<34} {seconds:8.3f} s  {remark}".rstrip())


def gigabytes(count, seconds):
    return f"{count * 1e-9 / seconds:.2f} GB/s"


def show_run(options, runs):
    """The table of the median run, which is returned. What neither the longest stage nor the wait
    for the disk explains is neither reading nor computing nor writing."""
    result = runs[len(runs) // 2]
    summary, wall = result["summary"], result["wall"]
    stages = summary["stages"]
    print(f"\n{'stage (sums over ranks)':<34} {'busy':>8}    {'waiting':>8}")
    for name, stage in stages.items():
        rate = stage.get("GB_per_s")
        print(f"{name:<34} {stage['busy_s']:8.3f} s  {stage['wait_s']:8.3f} s"
              f"{f'  {rate:.2f} GB/s' if rate else ''}")
    print()
    line("wall time of fugu qr", wall, f"median of {len(runs)}, {runs[0]['wall']:.3f} to "
         f"{runs[-1]['wall']:.3f}")
    busy = {name: stage["busy_s"] / options.ranks for name, stage in stages.items()}
    longest = max(busy, key=busy.get)
    rest = wall - busy[longest] - summary["sync_seconds"]
    line(f"  longest stage, {longest}", busy[longest],
         "a rank's share" if options.ranks > 1 else "the others run beside it")
    line("  until all is on the disk", summary["sync_seconds"], "behind the last write")
    line("  not reading, computing, writing", rest, f"{100 * rest / wall:.1f} % of the wall time; "
         f"{wall - summary['seconds']:.3f} s of it before and after the run")
    line("processor time", result["processor"], f"{result['processor'] / wall:.2f} cores")
    if options.ranks == 1:
        print(f"{'peak memory':<34} {result['memory'] * 1e-6:8.0f} MB")
    return result


def compare(options, folder, source, result, matrices):
    read = read_plainly(source)
    write = write_plainly(os.path.join(folder, "plain"), result["bytes"])
    pure = factor_only(options, folder, matrices)
    wall, bytes_in = result["wall"], os.path.getsize(source)
    print()
    line("plain read of the input", read, gigabytes(bytes_in, read))
    line("plain write of as much, with sync", write, gigabytes(result["bytes"], write))
    line("factoring alone, by fugu bench", pure, f"{matrices / pure:,.0f} matrices/s")
    limit = max(read + write, pure)
    line("wall time less the longer of these", wall - limit, f"{wall / limit:.2f} times as long")
    if options.n > 64:
        return
    each = loop(source, os.path.join(folder, "loop.h5"), matrices)
    if isinstance(each, str):
        print(f"{'h5py + SciPy geqrf loop':<34} {each}")
        return
    count = min(LOOP_MATRICES, matrices)
    line("h5py + SciPy geqrf loop, no T", each * matrices, f"from {count} matrices, "
         f"{1 / each:,.0f} matrices/s; {each * matrices / wall:.1f} times fugu qr")


def main():
    options = arguments()
    os.environ["OPENBLAS_NUM_THREADS"] = "1"
    matrices = max(1, options.size // (8 * options.n * options.n))
    folder = tempfile.mkdtemp(prefix="fugu-bench-", dir=options.dir)
    source, target = os.path.join(folder, "in.h5"), os.path.join(folder, "out.h5")
    try:
        run([options.fugu, "gen", source, "-q", "--add",
             f"gaussian:{options.n}x{options.n}x{matrices}:d:name=A"])
        os.sync()  # its pages are not written while something is measured
        read_plainly(source)
        runs = factor(options, source, target)
        summary = runs[0]["summary"]
        print(f"{matrices:,} matrices {options.n} x {options.n} float64, "
              f"{os.path.getsize(source) * 1e-6:,.0f} MB in, "
              f"{runs[0]['bytes'] * 1e-6:,.0f} MB out; "
              f"ranks: {options.ranks}, threads of each: {options.threads}")
        print(f"fugu {summary['version']} ({summary['git']}), backend {summary['backend']} "
              f"({summary['instruction_set']}), {time.strftime('%Y-%m-%d')}")
        compare(options, folder, source, show_run(options, runs), matrices)
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
