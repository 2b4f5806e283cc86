#!/bin/bash
# fugu bench: what it prints and writes, what it refuses, and peers that fail. No figure is judged.
. "$(dirname "$0")/lib.sh"

# refused before anything is measured
for o in '--types q' '--sizes 4,,8' '--sizes x' '--sizes 0' '--sizes 4x' '--shapes round' \
    '--shapes 4x' '--shapes 4x0' '--shapes square,' '--shapes all,,4x4' '--threads x' \
    '--threads 1025' '--nb 0' '--place disk' \
    '--backend gpu' '--peer-timeout 0' '--repeats 100'; do
    # shellcheck disable=SC2086 # an option and its value
    expect 2 "$FUGU" bench $o
    one_line "${o%% *}"
done
expect 2 "$FUGU" bench in.h5
one_line 'unexpected argument'
expect 3 "$FUGU" bench --quick --csv no/such/dir/x.csv
one_line 'no/such/dir/x\.csv: No such file'
expect 3 "$FUGU" bench --quick --tuning absent.csv
one_line 'absent.csv: No such file'
echo 'no table' >no.csv
expect 3 "$FUGU" bench --quick --tuning no.csv
one_line 'no\.csv: line 1'

# a table, CSV and JSON
expect 0 "$FUGU" bench --quick --types s,z --sizes 4,9 --shapes square,wide2,12x5 --csv x.csv \
    --json x.json
says out.txt '^cpu +[^ ]'
says out.txt '^kernels +backend [a-z-]+ \([^)]+\), 1 thread'
says out.txt '^peak P +([0-9.]+ GF/s sgemm, [0-9.]+ GF/s dgemm|unknown: )'
says out.txt '^bandwidth W +[0-9.]+ GB/s'
says out.txt '^cpu .*level 2 [0-9.]+ [kM]B, last level [0-9.]+ [kMG]B'
says out.txt '^clock +processor time$'
for shape in 4x4 9x9 4x8 9x18 12x5; do
    for place in cache stream; do
        says out.txt "^s +$shape +$place +[0-9,]+ +[0-9.]+"
        says out.txt "^z +$shape +$place +[0-9,]+ +[0-9.]+"
    done
done
says out.txt '^wrote x\.csv'
cases=$((cases + 1))
awk 'length($0) > 100 { exit 1 }' out.txt || complain "a line is longer than 100"
says x.csv '^# command: .*bench --quick'
says x.csv '^# date: 20[0-9-]+T'
says x.csv '^# start_bandwidth_gbytes_per_s: [0-9.]+$'
says x.csv '^engine,version,algorithm,.*,matrices_per_s,gflops_per_s,.*,time_over_fugu,speed_up$'
if command -v python3 >/dev/null; then
    expect 0 python3 -c '
import csv, json
rows = list(csv.DictReader(line for line in open("x.csv") if line[0] != "#"))
document = json.load(open("x.json"))
results = document["results"]
assert len(rows) == len(results) == 20, len(rows)
assert document["machine"]["start_bandwidth_gbytes_per_s"] > 0 and document["command"]
for row, result in zip(rows, results):
    assert None not in row and None not in row.values() and set(row) == set(result)
    assert row["engine"] == "fugu" and float(row["gflops_per_s"]) > 0
    assert int(row["batch_matrices"]) % 16 == 0 and float(row["matrices_per_s"]) > 0
    assert row["threads"] == "1" and row["speed_up"] == "" and int(row["batch_bytes"]) > 0
    assert (row["memory_bound_gflops_per_s"] != "") == (row["place"] == "stream")
    for key in row:
        value = result[key]
        same = isinstance(value, str) and row[key] == value or \
            value is None and row[key] == "" or \
            isinstance(value, (int, float)) and abs(float(row[key]) - value) <= 1e-5 * abs(value)
        assert same, (key, row[key], value)
'
fi
expect 0 "$FUGU" bench --quick -q -t d -n 5 --place cache --backend cpu-ref --repeats 2
says out.txt '^d +5x5 +cache'
cases=$((cases + 1))
! grep -q stream out.txt || complain 'a place that was not asked for'
expect 0 "$FUGU" info --tuning
sed 's/^fugu-tuning,\([0-9]*\),built-in/fugu-tuning,\1,mine/' out.txt >mine.csv
expect 0 "$FUGU" bench --quick -t d -n 5 --place cache --repeats 1 --tuning mine.csv --csv tuned.csv
says out.txt '^kernels .*, tuning mine v[0-9]+ [0-9a-f]{8}$'
says tuned.csv '^# tuning: mine v[0-9]+ [0-9a-f]{8}$'
expect 0 "$FUGU" bench --quick -t s -n 3 --shapes all --place cache --repeats 1 --csv all.csv
for shape in square,cache,3,3 tall4,cache,12,3 tall16,cache,48,3 wide2,cache,3,6 \
    1024x128,cache,1024,128 2048x1024,cache,2048,1024 8192x1024,cache,8192,1024; do
    says all.csv "^\"fugu\",.*,s,$shape,32,1,"
done

# threads: a speed-up, whatever it is
expect 0 "$FUGU" bench --quick -t s,d -n 5,70 --threads 2 --repeats 1 --csv two.csv --json two.json
says out.txt '^kernels .*, 2 threads, '
says out.txt '^clock +wall time;'
says out.txt ' out speed-up$'
says out.txt '^d +70x70 +stream +[0-9,]+ .* [0-9.]+$'
says out.txt '^speed-up: rate of all threads'
says two.csv '^# clock: wall time$'
says two.csv '^"fugu",.*,d,square,cache,70,70,32,2,.*,1,[0-9.]+$'
says two.json '"speed_up": [0-9.]+$'
expect 0 "$FUGU" bench --quick -t d -n 5 --threads auto --place cache --repeats 1
says out.txt '^d +5x5 +cache'

# peers: none, a good one, and all the ways to fail
small=("$FUGU" bench --quick -t d -n 5 --place cache --repeats 2)
expect 3 "${small[@]}" --peer-dir no/peers
one_line 'no/peers.*No such file'
mkdir alone
cp "$FUGU" alone/fugu
expect 0 alone/fugu bench --quick -t d -n 5 --place cache --peers
one_line 'alone/peers.*No such file.*tests/peers/setup\.sh'
says out.txt '^d +5x5 +cache'
mkdir peers
expect 0 "${small[@]}" --peer-dir peers
one_line 'no peers'

# peer NAME BODY: a program that reads lines; BODY answers each, in $line.
peer() {
    cat >"peers/peer_$1" <<END
#!/bin/bash
echo "peer $1 1.0 of a script"
echo "algorithm fast sd T"
echo "algorithm slow d nothing"
echo ready
while read -r line; do
    case \$line in
    prepare*) $3 ;;
    run*) $2 ;;
    esac
done
END
    chmod +x "peers/peer_$1"
}
# shellcheck disable=SC2016 # the peer expands it
peer good 'case $line in *fast*) echo seconds 0.01 ;; *) echo seconds 1 ;; esac' 'echo ok'
expect 0 "${small[@]}" --peer-dir peers --csv peers.csv
says out.txt '^peer +good \(1\.0 of a script\): fast, slow'
says out.txt '^d +5x5 +cache .* good fast$'
says out.txt '^good fast +1 +[0-9.]+ +[0-9.]+ +[0-9.]+  T$'
says out.txt '^good slow +1 .*  nothing$'
says peers.csv '^"good","1\.0 of a script","fast","T",d,square,cache,5,5,'
expect 0 "${small[@]}" --peer-dir peers --threads 2 --csv peers.csv
says out.txt '^Peers have one thread'
row='^"good","1\.0 of a script","fast","T"'
says peers.csv "$row"',d,square,cache,5,5,32,1,[0-9]+,[0-9]+,2,.*,,,,,,,$'
cases=$((cases + 1))
! grep -q 'good fast' out.txt || complain 'a peer with one thread beside two threads of fugu'
peer able 'echo no way' 'echo ok'
peer dying 'exit 3' 'echo ok'
peer killed 'kill -9 $$' 'echo ok'
peer hanging 'echo $$ >hanging.pid; sleep 600' 'echo ok'
peer strange 'echo seconds later' 'echo ok'
peer early 'echo seconds 1' 'exit 4'
peer deaf 'echo seconds 1' 'echo what'
peer endless 'head -c 5000 /dev/zero | tr "\0" x' 'echo ok'
printf '#!/bin/sh\necho peer shy 2\necho cannot no library\n' >peers/peer_shy
printf '#!/bin/sh\nexit 0\n' >peers/peer_silent
printf 'no program\n' >peers/peer_notes
printf 'not a format that runs\n' >peers/peer_broken
chmod +x peers/peer_shy peers/peer_silent peers/peer_broken
expect 0 timeout 60 "${small[@]}" --peer-dir peers --peer-timeout 1
says err.txt 'peer dying ended with code 3 \(run fast [0-9]+\); it is left out'
says err.txt 'peer killed was ended by signal 9 '
says err.txt 'peer hanging gave no answer within 1 s \(run fast'
says err.txt "peer strange said 'seconds later'"
says err.txt 'peer early ended with code 4 \(prepare d 5 5 32 [0-9]+ col\)'
says err.txt "peer deaf said 'what'"
says err.txt 'peer endless wrote a line of more than'
says err.txt 'peer shy cannot run: no library'
says err.txt 'peer silent ended with code 0 \(start\)'
says err.txt 'peer broken ended with code 127 \(start\)'
says out.txt '^d +5x5 +cache .* good fast$'
cases=$((cases + 1))
[ "$(grep -c 'left out' err.txt)" -eq 10 ] || complain 'not ten peers are left out'
cases=$((cases + 1))
! kill -0 "$(cat hanging.pid)" 2>/dev/null || complain 'the hanging peer still runs'
finish
