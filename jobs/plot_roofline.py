#!/usr/bin/env python3
"""Draws what `fugu bench --csv` measured: share of the peak against n, a panel for each type.

fugu is one strong line; each peer is one muted line, its fastest algorithm at each n (whatever it
leaves out); the dashed grey line is the fastest peer that returns T as well; the thin black line is
the bound. Usage: plot_roofline.py FILE.csv [-o FILE.png] [--place cache|stream] [--shape square]
"""
import argparse
import csv
import sys

TYPES = {"s": "float32", "d": "float64", "c": "complex64", "z": "complex128"}
PEERS = {  # the rest get grey
    "mkl": ("#8fb0c9", "o"), "mkl-avx2": ("#8fb0c9", "v"),
    "openblas": ("#b7a2c4", "o"), "openblas-new": ("#b7a2c4", "v"),
    "eigen": ("#a9bf9a", "s"), "blasfeo": ("#d4b48c", "D"),
}
OURS, BOUND, QUIET = "#c2341d", "#222222", "#777777"


def fail(message):
    sys.exit(f"plot_roofline.py: {message}")


def arguments():
    parser = argparse.ArgumentParser(
        description="Share of the peak against n from the CSV of fugu bench, as a PNG.")
    parser.add_argument("csv")
    parser.add_argument("-o", "--output", help="default: the name of the CSV with .png")
    parser.add_argument("--place", choices=("cache", "stream"), default="cache")
    parser.add_argument("--shape", default="square", help="square, tall4, tall16, wide2")
    options = parser.parse_args()
    options.output = options.output or options.csv.removesuffix(".csv") + ".png"
    return options


def read(path):
    """What the comment lines say, and the rows."""
    try:
        with open(path, newline="", encoding="utf-8") as file:
            lines = file.readlines()
    except OSError as error:
        fail(f"{path}: {error.strerror}")
    about = dict(line[2:].rstrip("\n").split(": ", 1) for line in lines
                 if line.startswith("# ") and ": " in line)
    rows = list(csv.DictReader(line for line in lines if not line.startswith("#")))
    if not rows or "share_of_peak_percent" not in rows[0]:
        fail(f"{path} is no CSV of fugu bench, or holds no row")
    return about, rows


def curves(rows):
    """{engine: {n: best share in %}}, n = min(rows, columns); "with T" and "bound" among them."""
    found = {}

    def keep(name, n, share):
        best = found.setdefault(name, {})
        best[n] = max(share, best.get(n, 0))

    for row in rows:
        if not row["share_of_peak_percent"]:
            continue  # a peer with one thread beside the peak of several
        n = min(int(row["m"]), int(row["n"]))
        share = float(row["share_of_peak_percent"])
        keep(row["engine"], n, share)
        if row["engine"] == "fugu":
            keep("bound", n, 100 * float(row["bound_gflops_per_s"]) /
                 float(row["peak_gflops_per_s"]))
        elif not row["leaves_out"].startswith("T"):
            keep("with T", n, share)
    return found


def draw(axes, found):
    lines = {}
    for name in sorted(found):
        n, share = zip(*sorted(found[name].items()))
        if name == "fugu":
            style = {"color": OURS, "marker": "o", "linewidth": 2.4, "markersize": 5, "zorder": 5}
        elif name == "bound":
            style = {"color": BOUND, "linewidth": 0.9, "zorder": 1}
        elif name == "with T":
            style = {"color": QUIET, "linewidth": 1.2, "linestyle": (0, (4, 2)), "zorder": 3}
        else:
            color, marker = PEERS.get(name, ("#bbbbbb", "x"))
            style = {"color": color, "marker": marker, "linewidth": 1.1, "markersize": 3.5,
                     "zorder": 2}
        lines[name], = axes.plot(n, share, **style)
    axes.set_xscale("log", base=2)
    ticks = sorted(n for n in found.get("fugu", {}) if n & (n - 1) == 0) or sorted(found["fugu"])
    axes.set_xticks(ticks, [str(n) for n in ticks])
    axes.minorticks_off()
    axes.grid(axis="y", color="#e6e6e6", linewidth=0.7)
    axes.set_axisbelow(True)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    return lines


def label(name, versions):
    if name == "bound":
        return "bound: min(P, W)"
    if name == "with T":
        return "fastest peer that returns T"
    return f"fugu {versions[name]}" if name == "fugu" else f"{name}: {versions[name]}"


def main():
    options = arguments()
    try:
        import matplotlib
    except ImportError:
        fail("matplotlib is missing; apt-get install python3-matplotlib, or pip install matplotlib")
    matplotlib.use("Agg")
    from matplotlib import pyplot

    about, rows = read(options.csv)
    versions = {row["engine"]: row["version"] for row in rows}
    rows = [row for row in rows if row["place"] == options.place and row["shape"] == options.shape]
    if rows and not any(row["share_of_peak_percent"] for row in rows):
        fail(f"{options.csv} knows no peak: {about.get('peak_source', 'no reason given')}")
    types = [t for t in TYPES if any(row["dtype"] == t for row in rows)]
    if not types:
        fail(f"{options.csv} has no row of shape {options.shape}, place {options.place}")
    columns, lines_of_panels = min(2, len(types)), (len(types) + 1) // 2
    figure, panels = pyplot.subplots(
        lines_of_panels, columns, squeeze=False, sharey=True,
        figsize=(7 if columns == 1 else 10.4, 3.4 * lines_of_panels + 1.5))
    lines = {}
    for axes, kind in zip(panels.flat, types):
        lines |= draw(axes, curves([row for row in rows if row["dtype"] == kind]))
        axes.set_title(f"{TYPES[kind]} ({kind})", loc="left", fontsize=10)
    for axes in list(panels.flat)[len(types):]:
        axes.set_visible(False)
    panels[0, 0].set_ylim(bottom=0)  # of all panels
    for axes in panels[:, 0]:
        axes.set_ylabel("share of the peak P [%]")
    for axes in list(panels.flat)[max(0, len(types) - columns):len(types)]:
        axes.set_xlabel("n = min(rows, columns)")
    first = ("fugu", "bound", "with T")
    order = [name for name in first if name in lines] + sorted(set(lines) - set(first))
    figure.legend([lines[name] for name in order], [label(name, versions) for name in order],
                  loc="lower center", ncols=2 if columns == 1 else 3, frameon=False, fontsize=8)
    threads = "1 thread" if about.get("threads") == "1" else f"{about.get('threads')} threads"
    where = {"cache": "batch in cache", "stream": "batch from memory"}[options.place]
    figure.suptitle(f"QR of batches of {options.shape} matrices, {where}\n", fontsize=11, x=0.5)
    figure.text(0.5, 0.945 if len(types) > 2 else 0.9,
                f"{about.get('cpu')}, {about.get('instruction_set')}, {threads}, "
                f"{about.get('date', '')[:10]}", ha="center", fontsize=8, color=QUIET)
    figure.tight_layout(rect=(0, 0.075 if len(types) > 2 else 0.17, 1, 1))
    figure.savefig(options.output, dpi=130)
    print(f"wrote {options.output}")


if __name__ == "__main__":
    main()
