#!/usr/bin/env python3
"""Writes the case table of test_syrk.c to standard output: the same table every time.

Classes: L0 smoke, SQ square, AB alpha and beta, WS wide (k > n), TH thin (k < n), LD leading
dimensions, FL every fill mode and operation, CV ranges of values, ED edges, EX special values.
"""
import itertools

COLUMNS = "class dtype hermitian uplo trans n k pad_a pad_c alpha beta values batch"
UPLO, TRANS = "UL", "NTC"
rows = []


def add(kind, dtype, uplo, trans, n, k, pads=(0, 0), alpha="1+0i", beta="0+0i", values="gaussian",
        batch=1, hermitian=0):
    if hermitian and trans == "T":
        return
    rows.append((kind, dtype, hermitian, uplo, trans, n, k, *pads, alpha, beta, values, batch))


modes = list(itertools.product(UPLO, TRANS))
for dtype, (uplo, trans) in itertools.product("cz", modes):
    for h in (0, 1):
        add("L0", dtype, uplo, trans, 8, 8, batch=3, hermitian=h)
        add("L0", dtype, uplo, trans, 33, 17, alpha="0.5+0i", beta="2+0i", batch=2, hermitian=h)
        for n, k in ((5, 3), (31, 32), (64, 64)):
            add("FL", dtype, uplo, trans, n, k, alpha="-1+0i", beta="1+0i", hermitian=h)
for dtype, (uplo, trans) in itertools.product("sd", modes):
    add("L0", dtype, uplo, trans, 19, 23, alpha="0.75+0i", beta="-1+0i", batch=2)
for (uplo, trans), n in itertools.product(modes, (1, 2, 3, 7, 15, 16, 17, 32, 48, 63, 65, 96, 128)):
    add("SQ", "c", uplo, trans, n, n, alpha="1.25-0.5i", beta="0.5+0.25i")
for n in (160, 256, 300):
    add("SQ", "c", "U", "N", n, n)
    add("SQ", "c", "L", "T", n, n, alpha="0+1i", beta="1+0i")
numbers = ("0+0i", "1+0i", "-1+0i", "0+1i", "0.5-2i", "1e-30+0i", "3e4+1e4i")
for (uplo, trans), alpha, beta in itertools.product((("U", "N"), ("L", "T")), numbers, numbers):
    add("AB", "c", uplo, trans, 13, 9, alpha=alpha, beta=beta)
for alpha, beta in itertools.product(("0+0i", "1+0i", "-2+0i"), repeat=2):
    add("AB", "c", "U", "C", 12, 10, alpha=alpha, beta=beta, hermitian=1)
    add("AB", "z", "L", "N", 12, 10, alpha=alpha, beta=beta, hermitian=1)
for (uplo, trans), (n, k) in itertools.product(
        modes, ((1, 64), (2, 500), (4, 1000), (16, 300), (31, 129), (33, 257))):
    add("WS", "c", uplo, trans, n, k, alpha="1+1i", beta="1+0i")
for (uplo, trans), (n, k) in itertools.product(
        modes, ((64, 1), (100, 2), (129, 3), (200, 5), (257, 8), (90, 31))):
    add("TH", "c", uplo, trans, n, k, alpha="-1+0.5i", beta="0+1i")
for (uplo, trans), pads, (n, k) in itertools.product(
        modes, ((1, 0), (0, 1), (3, 5), (64, 7)), ((6, 11), (32, 32), (47, 20))):
    add("LD", "c", uplo, trans, n, k, pads=pads, alpha="2+0i", beta="-1+0i", batch=2)
for (uplo, trans), values, h in itertools.product(
        modes, ("integers", "tiny", "large", "spread", "zeros", "sparse"), (0, 1)):
    for n, k in ((10, 12), (40, 33)):
        add("CV", "c", uplo, trans, n, k, alpha="1+0i", beta="1+0i", values=values, hermitian=h)
    add("CV", "z", uplo, trans, 21, 30, alpha="1+0i", beta="0.5+0i", values=values, hermitian=h)
for (uplo, trans), (n, k) in itertools.product(
        modes, ((0, 5), (5, 0), (0, 0), (1, 1), (1, 7), (7, 1), (16, 16), (17, 15), (33, 31))):
    for beta in ("0+0i", "1+0i", "0.5+0.5i"):
        add("ED", "c", uplo, trans, n, k, alpha="1+0i", beta=beta)
for (uplo, trans), values, beta in itertools.product(
        modes, ("nan", "inf", "max", "one-nan", "one-inf"), ("0+0i", "1+0i", "2-1i")):
    add("EX", "c", uplo, trans, 9, 11, alpha="1+0.5i", beta=beta, values=values)
    add("EX", "c", uplo, trans, 35, 20, alpha="1+0i", beta=beta, values=values, pads=(2, 1))
for (uplo, trans), values in itertools.product(modes, ("nan", "inf", "max", "one-inf")):
    add("EX", "z", uplo, trans, 12, 10, alpha="0.5+0i", beta="1+0i", values=values, hermitian=1)
    add("EX", "c", uplo, trans, 12, 10, alpha="0+0i", beta="1+0i", values=values)
    add("EX", "c", uplo, trans, 12, 10, alpha="1+0i", beta="0+0i", values="c-" + values)
for n, k in ((512, 64), (1024, 16), (64, 2048), (16, 4096), (4096, 4), (4096, 1)):
    add("WS" if k > n else "TH", "c", "L", "N", n, k, alpha="1+0i", beta="1+0i")
    add("WS" if k > n else "TH", "c", "U", "T", n, k, alpha="1+0i", beta="0+0i")

print(COLUMNS.replace(" ", ","))
for row in rows:
    print(",".join(map(str, row)))
