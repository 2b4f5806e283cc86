# Sourced by the case scripts: a fresh folder, the program, and checks that print the exact command.
# shellcheck shell=bash
set -u
FUGU=${FUGU:-$(realpath build/fugu)}
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
export OMPI_MCA_rmaps_base_oversubscribe=1 OMPI_MCA_hwloc_base_binding_policy=none
work=$(mktemp -d)
trap 'chmod -R u+w "$work" 2>/dev/null; rm -rf "$work"' EXIT
cd "$work" || exit 1
cases=0 bad=0

complain() {
    bad=$((bad + 1))
    echo "FAILED: $last"
    printf '    %s\n' "$@"
    sed 's/^/    stdout: /' out.txt | head -n 15
    sed 's/^/    stderr: /' err.txt | head -n 15
}

# expect CODE command...: runs it, checks the exit code. Output in out.txt and err.txt.
expect() {
    local want=$1 code=0
    shift
    last="$*"
    cases=$((cases + 1))
    "$@" >out.txt 2>err.txt || code=$?
    [ "$code" -eq "$want" ] || complain "exit $code, expected $want"
}

# says FILE PATTERN: the last command's out.txt or err.txt has a line that matches.
says() {
    cases=$((cases + 1))
    grep -qE -- "$2" "$1" || complain "$1 has no line like: $2"
}

# quiet_error PATTERN: stderr of the last command is exactly one line, and it matches.
one_line() {
    cases=$((cases + 1))
    [ "$(grep -c '^fugu' err.txt)" -eq 1 ] && [ "$(wc -l <err.txt)" -eq 1 ] &&
        grep -qE -- "$1" err.txt ||
        complain "stderr is not one line like: $1"
}

# one_line under mpirun, which adds a banner of its own.
one_fugu_line() {
    cases=$((cases + 1))
    [ "$(grep -c '^fugu' err.txt)" -eq 1 ] && grep -qE -- "$1" err.txt ||
        complain "stderr has not exactly one line of fugu like: $1"
}

same() {
    cases=$((cases + 1))
    last="cmp $1 $2"
    : >out.txt
    cmp "$1" "$2" >err.txt 2>&1 || complain "the files differ"
}

absent() {
    cases=$((cases + 1))
    last="no $1"
    : >out.txt
    : >err.txt
    [ ! -e "$1" ] || complain "$1 exists"
}

finish() {
    echo "$cases checks, $bad failed"
    [ "$cases" -gt 0 ] && [ "$bad" -eq 0 ]
    exit
}
