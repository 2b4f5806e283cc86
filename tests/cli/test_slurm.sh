#!/bin/bash
# The job scripts under a real Slurm: controller, one daemon and munge on this machine, started and
# stopped here. Skipped where they are not installed, or where this is not root.
. "$(dirname "$0")/lib.sh"
for tool in slurmctld slurmd munged sbatch scontrol; do
    PATH=$PATH:/usr/sbin command -v $tool >/dev/null ||
        { echo "$tool is not installed (apt-get install slurm-wlm munge)"; exit 77; }
done
[ "$(id -u)" -eq 0 ] || { echo "Slurm's daemons are started as root only"; exit 77; }
export PATH=$PATH:/usr/sbin SLURM_CONF=$work/slurm.conf
jobs=$(realpath "$(dirname "$FUGU")/../jobs") host=$(hostname -s)
PATH=$(dirname "$(realpath "$FUGU")"):$PATH

# shellcheck disable=SC2317 # called by the trap
stop_slurm() {
    pkill -F slurmd.pid 2>/dev/null
    pkill -F slurmctld.pid 2>/dev/null
    pkill -F munge/munged.pid 2>/dev/null
    sleep 1
    chmod -R u+w "$work"
    rm -rf "$work"
}
trap stop_slurm EXIT

mkdir -p munge state spool && chmod 700 munge
dd if=/dev/urandom of=munge/key bs=64 count=1 2>/dev/null && chmod 400 munge/key
chmod 755 "$work"
munged --force --key-file="$work/munge/key" --socket="$work/munge/socket" \
    --pid-file="$work/munge/munged.pid" --log-file="$work/munge/log" \
    --seed-file="$work/munge/seed" || { echo "munged does not start"; exit 77; }
cat >slurm.conf <<C
ClusterName=fugu
SlurmctldHost=$host(127.0.0.1)
SlurmctldPort=$((20000 + $$ % 10000))
SlurmdPort=$((30000 + $$ % 10000))
AuthType=auth/munge
AuthInfo=socket=$work/munge/socket
CryptoType=crypto/munge
SlurmUser=root
SlurmdUser=root
StateSaveLocation=$work/state
SlurmdSpoolDir=$work/spool
SlurmctldPidFile=$work/slurmctld.pid
SlurmdPidFile=$work/slurmd.pid
SlurmctldLogFile=$work/slurmctld.log
SlurmdLogFile=$work/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
ReturnToService=2
MpiDefault=none
KillWait=5
SchedulerParameters=sched_interval=1,batch_sched_delay=0
NodeName=$host NodeAddr=127.0.0.1 CPUs=$(nproc) RealMemory=1000 State=UNKNOWN
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP
C
slurmctld -f slurm.conf && slurmd -f slurm.conf -N "$host"
for _ in $(seq 100); do
    sinfo -h -o %t 2>/dev/null | grep -q idle && break
    sleep 0.2
done
sinfo -h -o %t 2>err.txt | grep -q idle ||
    { tail -n 3 slurmctld.log slurmd.log; echo "Slurm does not start here"; exit 77; }

export FUGU_JOBS=$jobs FUGU_MPIRUN="mpirun -n 2 --bind-to none" FUGU_OPTIONS="--threads 1"
# ended JOB: waits, and puts a job that was queued again at the front: after a while, as slurmd
# refuses a job's new start in the second in which it ended the old one (credential revoked).
ended() {
    local queued=0
    for _ in $(seq 1500); do
        state=$(scontrol -o show job "$1" | sed -n 's/.*JobState=\([A-Z]*\).*/\1/p')
        case $state in
        COMPLETED | FAILED | TIMEOUT | CANCELLED | NODE_FAIL) return ;;
        PENDING) queued=$((queued + 1)) ;;
        *) queued=0 ;;
        esac
        [ "$queued" -lt 15 ] || scontrol update JobId="$1" StartTime=now 2>/dev/null
        sleep 0.2
    done
}
submit() { # CODE script args...
    local want=$1
    shift
    last="sbatch $*"
    cases=$((cases + 1))
    job=$(sbatch --parsable --mem=100 --output="$work/job.log" --error="$work/job.log" "$@" \
        2>err.txt)
    [ -n "$job" ] && ended "$job"
    code=$(scontrol -o show job "$job" | sed -n 's/.*ExitCode=\([0-9]*\):.*/\1/p')
    tail -n 14 job.log >out.txt 2>/dev/null
    [ "$code" = "$want" ] || complain "state $state, exit $code, expected $want"
}

# the pipeline script, as it is
submit 0 "$jobs/pipeline.sbatch" "$work" gaussian:40x40x500:d gaussian:100x60x50:z
says job.log 'PASSED'
rm -f out.h5

# three time slices, unattended (Slurm looks at time limits every 30 s); slowed down, not busy
"$FUGU" gen big.h5 -q --add gaussian:100x100x800:d
expect 0 "$FUGU" qr big.h5 -o good.h5 --unit-size 1M --scalapack 0
FUGU_FAULT=factor:750:slow submit 0 --time=1 --signal=B:USR1@56 "$jobs/requeue.sbatch" big.h5 \
    sliced.h5 --unit-size 1M --scalapack 0
starts=$(grep -c '^job .* start [0-9]' job.log)
last="sbatch requeue.sbatch"
cases=$((cases + 1))
[ "$starts" -ge 3 ] || complain "$starts slices, at least 3 expected"
says job.log 'stopped by signal USR1'
same good.h5 sliced.h5

# a job array, and the index of one task again
last="sbatch --array=3-6 array.sbatch"
cases=$((cases + 1))
job=$(sbatch --parsable --mem=100 --array=3-6 --output="$work/array.log" "$jobs/array.sbatch" \
    big.h5 array.h5 --unit-size 1M 2>err.txt)
for _ in $(seq 600); do
    [ -n "$(squeue -h -j "$job" 2>/dev/null)" ] || break
    sleep 0.2
done
cp array.log out.txt
[ -e array.h5 ] || complain "array.h5 is not there"
same good.h5 array.h5

# a slice that finishes nothing does not go back to the queue
submit 75 "$jobs/requeue.sbatch" big.h5 never.h5 --unit-size 1M --scalapack 0 --max-time 0
says job.log 'not queued again'
absent never.h5

# plain srun without PMIx: every task would be rank 0 of 1
last="srun -n 2 fugu qr"
cases=$((cases + 1))
srun --mpi=none -n 2 --mem=100 "$FUGU" qr big.h5 -o srun.h5 -q >out.txt 2>err.txt
code=$?
[ $code -eq 3 ] || complain "exit $code, expected 3"
says err.txt 'srun started them without PMIx'
absent srun.h5
finish
