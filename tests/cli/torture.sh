#!/bin/bash
# Kills runs at seeded moments of every phase and lets calls fail, resumes, and compares the bytes
# with those of an undisturbed run. Prints what counted. A kill counts when the run died by it.
# Usage: torture.sh [KILLS] [SEED]   KILLS a phase (50), every failing call once when 50 or more.
. "$(dirname "$0")/lib.sh"
kills=${1:-50} RANDOM=${2:-1}
units=0 journal=0 losses=0

"$FUGU" gen in.h5 -q --seed 5 --add gaussian:16x16x600:d --add gaussian:30x20x120:z \
    --add nan:12x12x3:s --add gaussian:90x60x12:c || exit 1
options=(in.h5 -o out.h5 --unit-size 64K --scalapack 0 -q)
"$FUGU" qr in.h5 -o good.h5 --unit-size 64K --scalapack 0 --json good.json -q
units=$(sed -n 's/^ *"units": \([0-9]*\),$/\1/p' good.json | head -n 1)

# start RANKS command-line...: fugu qr alone or under mpirun
start() {
    local ranks=$1
    shift
    if [ "$ranks" -eq 1 ]; then
        "$FUGU" qr "$@"
    else
        mpirun -n "$ranks" "$FUGU" qr "$@"
    fi
}

# Nothing that is called out.h5 may be unfinished, and what is resumed has the same bytes.
judge() { # what, ranks
    local code=0
    cases=$((cases + 1))
    last="$1"
    if [ -e out.h5 ] && ! cmp -s good.h5 out.h5; then
        losses=$((losses + 1))
        complain "out.h5 is there and is not whole"
    fi
    start "$2" "${options[@]}" --resume >out.txt 2>err.txt || code=$?
    if [ "$code" -gt 1 ] || ! cmp -s good.h5 out.h5 || [ -e out.h5.part ] ||
        ls out.h5.part.journal.* >/dev/null 2>&1; then
        losses=$((losses + 1))
        complain "resuming: exit $code, $(echo out.h5*)"
    fi
    rm -f out.h5*
}

# Journals of the largest run that was resumed, in bytes.
measure() {
    local size
    size=$(cat out.h5.part.journal.* 2>/dev/null | wc -c)
    [ "$size" -le "$journal" ] || journal=$size
}

passes() { # point: how often a run of one rank passes it, about
    case $1 in
    layout) echo 28 ;;
    data) echo $((units * 6)) ;;
    finish | rename | clean | reserve) echo 1 ;;
    sync | between | commit) echo $((units / 10 + 2)) ;; # one for many units
    *) echo "$units" ;;
    esac
}

kill_phase() { # point
    local counted=0 tries=0 resumed=0
    while [ "$counted" -lt "$kills" ] && [ $tries -lt $((kills * 6)) ]; do
        local ranks=$((tries % 4 == 3 ? 2 + RANDOM % 2 : 1)) code=0 most
        most=$(passes "$1")
        local n=$((1 + RANDOM % (most / ranks > 0 ? most / ranks : 1))) rank=$((RANDOM % ranks))
        case $1 in layout | reserve | finish | rename | clean) rank=0 ;; esac
        tries=$((tries + 1))
        # one in three is hit again while it resumes
        FUGU_FAULT=$1:$n:kill:$rank start $ranks "${options[@]}" --resume >out.txt 2>err.txt ||
            code=$?
        [ "$code" -ne 137 ] || counted=$((counted + 1))
        measure
        if [ $((RANDOM % 3)) -eq 0 ] && [ -e out.h5.part ]; then
            resumed=$((resumed + 1))
            continue
        fi
        judge "killed at $1 $n on rank $rank of $ranks" $((1 + RANDOM % 3))
    done
    judge "killed at $1, the last" 1
    echo "phase $1: $counted kills counted, $resumed of them hit again while resuming"
    [ "$counted" -ge "$kills" ] || complain "only $counted kills counted at $1"
}

# From outside, at any moment: a rank, or mpirun with all of them left behind.
kill_wild() {
    local counted=0 tries=0
    while [ "$counted" -lt "$kills" ] && [ $tries -lt $((kills * 4)) ]; do
        tries=$((tries + 1))
        mpirun -n 3 "$FUGU" qr "${options[@]}" --resume >out.txt 2>err.txt &
        local run=$! victim
        sleep "0.$((30 + RANDOM % 60))"
        victim=$run
        [ $((RANDOM % 2)) -eq 0 ] || victim=$(pgrep -n -f "$FUGU qr in.h5 -o out.h5" || echo $run)
        kill -9 "$victim" 2>/dev/null && counted=$((counted + 1))
        wait $run 2>/dev/null
        for _ in $(seq 100); do # ranks without their mpirun end by themselves
            pgrep -f "$FUGU qr in.h5 -o out.h5" >/dev/null || break
            sleep 0.1
        done
        judge "kill -9 of $([ "$victim" = $run ] && echo mpirun || echo a rank)" 2
    done
    echo "from outside: $counted kills"
}

# A call fails: exit 3 with one line, and what was done is used. From the first passage of a point
# to the last that a run comes to.
fail_calls() {
    local failed=0 point n step code
    for point in layout reserve read factor data sync between append commit finish rename clean; do
        step=$(passes $point)
        step=$((kills >= 50 ? 1 : step / kills + 1))
        for ((n = 1; ; n += step)); do
            local error=ENOSPC
            code=0 last="$point $n fails"
            [ $((n % 2)) -eq 0 ] || error=EIO
            FUGU_FAULT=$point:$n:$error "$FUGU" qr "${options[@]}" >out.txt 2>err.txt || code=$?
            if [ $n -gt 1 ] && [ $code -eq 1 ] && cmp -s good.h5 out.h5; then
                rm -f out.h5
                break
            fi
            cases=$((cases + 1))
            [ $code -eq 3 ] || complain "exit $code, expected 3"
            one_line '.'
            failed=$((failed + 1))
            judge "$point $n fails with $error" 1
        done
    done
    echo "failing calls: $failed"
}

for phase in layout reserve data sync between append commit finish rename clean; do
    kill_phase $phase
done
kill_wild
fail_calls
echo "$units units, longest journals $journal bytes, $losses losses"
finish
