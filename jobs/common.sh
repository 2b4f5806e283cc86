# Sourced by the job scripts: the site's settings, and `factor`, which passes signals on.
# shellcheck shell=bash
set -u
for env in "${FUGU_ENV:-}" "${SLURM_SUBMIT_DIR:-.}/env.sh" "${FUGU_JOBS:-.}/env.sh"; do
    # shellcheck disable=SC1090 # site-specific
    [ -n "$env" ] && [ -r "$env" ] && . "$env" && break
done
read -ra launcher <<<"${FUGU_MPIRUN-mpirun --map-by ppr:1:node --bind-to none}"
read -ra options <<<"${FUGU_OPTIONS-}"
echo "job ${SLURM_JOB_ID:-none} start ${SLURM_RESTART_COUNT:-0}" \
    "on ${SLURM_JOB_NODELIST:-$(uname -n)} cpus $(nproc)"

# factor IN OUT [option...]: fugu qr --resume in the background, so that the traps run at once. The
# exit code is fugu's.
factor() {
    local in=$1 out=$2 code
    shift 2
    "${launcher[@]}" fugu qr "$in" -o "$out" --resume "${options[@]}" "$@" &
    run=$!
    trap 'kill -USR1 "$run" 2>/dev/null' USR1 TERM
    wait "$run"
    code=$?
    while [ "$code" -gt 128 ] && kill -0 "$run" 2>/dev/null; do
        wait "$run"
        code=$?
    done
    if [ "$code" -gt 128 ]; then # a trap ended the wait, and then the run ended
        wait "$run"
        code=$?
    fi
    trap - USR1 TERM
    return "$code"
}

# Bytes of all that the journals of OUT say is done.
journals() {
    cat "$1".part.journal.* 2>/dev/null | wc -c
}
