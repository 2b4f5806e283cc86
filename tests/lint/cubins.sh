#!/bin/bash
# What ptxas said of each kernel (BUILD/cubin/**/*.cubin.txt), as a table: registers, stack, spills.
# Fails on local memory outside tests/lint/spills.txt, and when there is no kernel at all.
# Usage: tests/lint/cubins.sh BUILD
set -u
build=$(realpath "$1")
cd "$(dirname "$0")/../.." || exit 2
find "$build/cubin/kernels" -name '*.cubin.txt' | sort | xargs cat |
    awk '/Compiling entry function/ { name = $0; gsub(/.*function .|. for .*/, "", name)
                                      arch = $0; gsub(/.*for .sm_/, "", arch)
                                      gsub(/[^0-9a-z].*/, "", arch) }
         /bytes stack frame/ { stack = $1; stores = $5; loads = $9 }
         /Used [0-9]+ registers/ { for (i = 1; i < NF; i++) if ($i == "Used") regs = $(i + 1)
                                   print name, arch, regs, stack, stores, loads }' |
    c++filt -p | sed -E 's/^void //; s/\(qr_[a-z_]*args\)//; s/, +/,/g; s/ > /> /g' |
    LC_ALL=C sort >"$build/cubin/kernels.txt"
awk 'FNR == NR { if ($1 != "" && $1 !~ /^#/) allowed[$1 " " $2] = $3; next }
     { bad = $4 > (($1 " " $2) in allowed ? allowed[$1 " " $2] : 0)
       printf "%-26s %-5s %4d registers %4d stack %4d + %d spilled%s\n", $1, $2, $3, $4, $5, $6,
           bad ? "   TOO MUCH" : ""
       failed += bad; n++ }
     END { if (!n) print "no kernel was assembled"; exit !n || failed > 0 }' \
    tests/lint/spills.txt "$build/cubin/kernels.txt"
