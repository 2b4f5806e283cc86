#!/bin/bash
# Line coverage per folder and file, from the .gcda files below DIR/obj. A line of a body that is
# compiled several times counts as run when any of its copies ran.
# Usage: tests/lint/coverage.sh DIR
set -u
cd "$(dirname "$0")/../.." || exit 2
dir=${1:?usage: coverage.sh DIR}
find "$dir/obj" -name '*.gcda' ! -path '*/obj/tests/*' -print0 |
    xargs -0 -r gcov --stdout 2>/dev/null |
    awk '
function folder(path,  n, part) {
    n = split(path, part, "/")
    return n > 2 ? part[1] "/" part[2] : part[1]
}
# "    #####:   12:text", "      5*:   13:text", "        -:    0:Source:app/cli.c"
{
    split($0, field, ":")
    count = field[1]; line = field[2] + 0
    gsub(/[ *]/, "", count)
}
line == 0 { if (field[3] == "Source") source = field[4] }
line > 0 && source ~ /^(app|io|mpi|kernels)\// && count ~ /^([0-9]+|#####|=====)$/ {
    key = source ":" line
    if (!(key in seen)) { seen[key] = 1; lines[source]++ }
    if (count ~ /^[0-9]/ && !(key in ran)) { ran[key] = 1; hit[source]++ }
}
END {
    for (s in lines) {
        f = folder(s)
        of[f] += lines[s]; by[f] += hit[s]
        printf "1 %s/ %s %d %d\n", f, s, hit[s], lines[s]
    }
    for (f in of) printf "0 %s/ %s/ %d %d\n", f, f, by[f], of[f]
}' | sort -k2,2 -k1,1n -k3,3 | awk '
    BEGIN { printf "%-28s %8s %8s %8s\n", "lines run", "run", "of", "%" }
    { printf "%-28s %8d %8d %8.1f\n", ($1 ? "  " : "") $3, $4, $5, 100 * $4 / $5 }
    !$1 { run += $4; of += $5 }
    END {
        if (of == 0) { print "coverage.sh: no coverage data" > "/dev/stderr"; exit 1 }
        printf "%-28s %8d %8d %8.1f\n", "total", run, of, 100 * run / of
    }'
