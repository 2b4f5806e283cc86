#!/bin/bash
# The man page and --help name the same commands and, for each command, the same options with the
# same values. Then the page's markup is checked with mandoc or man, whichever is there.
# Usage: tests/lint/man.sh FUGU
set -u
fugu=${1:?usage: man.sh FUGU}
page=$(dirname "$0")/../../app/fugu.1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
bad=0

# Commands: the first words of the indented lines below "commands".
commands() {
    "$fugu" --help | awk '/^commands/ { on = 1; next } /^$/ { on = 0 } on { print $1 }' | sort
}
commands >"$work/help"
awk '/^\.SH/ { on = /"?COMMANDS/ } on && /^\.SS fugu / { print $3 }' "$page" | sort >"$work/man"
diff -u --label '--help' --label fugu.1 "$work/help" "$work/man" || bad=1
[ -s "$work/help" ] || bad=1

# Options: lines "-o, --output FILE" in --help, and in the page the line behind .TP, without fonts.
# Options that every command has may stand once, under "Options of every command".
options() { # section title
    awk -v title="$1" '
        /^\.S[HS]/ {
            sub(/^\.S[HS] */, "")
            gsub(/"/, "")
            on = $0 == title
            next
        }
        on && tag { print } { tag = on && /^\.TP/ }' "$page" |
        sed -e 's/^\.B[RI]* *//' -e 's/\\f[BIRP]//g' -e 's/\\-/-/g' -e 's/"//g' -e 's/ *$//'
}
while read -r command; do
    "$fugu" "$command" --help |
        sed -nE 's/^  (-[a-zA-Z], |    )(--[^ ]+( [A-Z/]+)?)(  .*)?$/\1\2/p' |
        sed 's/^ *//' | sort >"$work/help"
    { options "fugu $command"; options "Options of every command"; } | sort >"$work/man"
    [ -s "$work/help" ] || bad=1
    diff -u --label "fugu $command --help" --label fugu.1 "$work/help" "$work/man" || bad=1
done < <(commands)

if command -v mandoc >/dev/null; then
    mandoc -Tlint -Wwarning "$page" || bad=1
fi
if command -v man >/dev/null && command -v groff >/dev/null; then
    LC_ALL=C.UTF-8 MANROFFSEQ='' MANWIDTH=80 man --warnings -E UTF-8 -l -Tutf8 -Z "$page" \
        2>"$work/warnings" >/dev/null
    [ ! -s "$work/warnings" ] || { cat "$work/warnings"; bad=1; }
fi
[ "$bad" -eq 0 ] || echo "man.sh: app/fugu.1 and --help differ, or its markup is wrong" >&2
exit "$bad"
