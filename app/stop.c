#include "app/stop.h"

#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "app/context.h"

static struct {
    volatile sig_atomic_t signal;
    atomic_int other; /* 1: time, 2: file */
    double start, deadline;
    const char *file;
    _Atomic double looked; /* when the file was looked for */
} stop = {.deadline = INFINITY};

static struct {
    io_journal_t *_Atomic journal;
    _Atomic int64_t unit;
} watch = {.unit = -1};

static void on_request(int number)
{
    stop.signal = number;
    if (number != SIGUSR1)
        signal(number, SIG_DFL);
}

static void on_crash(int number)
{
    io_journal_t *journal = atomic_load(&watch.journal);
    int64_t unit = atomic_load(&watch.unit);
    if (journal && unit >= 0)
        io_journal_crashed(journal, unit);
    signal(number, SIG_DFL);
    raise(number);
}

void stop_install(void)
{
    static const int requests[] = {SIGUSR1, SIGTERM, SIGINT};
    static const int crashes[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};
    struct sigaction action = {.sa_flags = SA_RESTART};
    stop.start = app_now();
    action.sa_handler = on_request;
    for (size_t i = 0; i < sizeof requests / sizeof *requests; i++)
        sigaction(requests[i], &action, NULL);
    action.sa_handler = on_crash;
    for (size_t i = 0; i < sizeof crashes / sizeof *crashes; i++)
        sigaction(crashes[i], &action, NULL);
}

double stop_duration(const char *text)
{
    static const struct {
        char letter;
        double seconds;
    } suffix[] = {{'s', 1}, {'m', 60}, {'h', 3600}, {'d', 86400}};
    int hours, minutes, seconds, end = 0;
    if (sscanf(text, "%d:%2d:%2d%n", &hours, &minutes, &seconds, &end) == 3 && !text[end] &&
        hours >= 0 && minutes >= 0 && seconds >= 0)
        return hours * 3600.0 + minutes * 60.0 + seconds;
    char *rest;
    double value = strtod(text, &rest);
    if (rest == text || !(value >= 0) || isinf(value))
        return -1;
    for (size_t i = 0; i < sizeof suffix / sizeof *suffix; i++)
        if (rest[0] == suffix[i].letter && !rest[1])
            return value * suffix[i].seconds;
    return *rest ? -1 : value;
}

/* Seconds until a minute before the job ends. */
static gb10_status_t job_time(double *seconds, gb10_error_t *err)
{
    const double margin = 60;
    const char *end = getenv("SLURM_JOB_END_TIME");
    if (!end)
        return GB10_FAIL(err, GB10_ERR_USAGE,
                         "--max-time auto: SLURM_JOB_END_TIME is not set: this is no job of a "
                         "Slurm that says when it ends. Give a time, such as 50m.");
    *seconds = strtod(end, NULL) - (double)time(NULL) - margin;
    *seconds = *seconds > 0 ? *seconds : 0;
    return GB10_OK;
}

gb10_status_t stop_limits(const char *max_time, const char *file, gb10_error_t *err)
{
    gb10_status_t status = GB10_OK;
    stop.file = file;
    if (max_time) {
        double seconds = strcmp(max_time, "auto") == 0 ? 0 : stop_duration(max_time);
        if (strcmp(max_time, "auto") == 0)
            status = job_time(&seconds, err);
        else if (seconds < 0)
            status = GB10_FAIL(err, GB10_ERR_USAGE,
                               "--max-time: '%s' is no time such as 90s, 30m, 2h, 1:30:00 or auto",
                               max_time);
        stop.deadline = stop.start + seconds;
    }
    return status;
}

bool stop_asked(void)
{
    const double interval = 0.5; /* between looks for the file */
    if (stop.signal || atomic_load(&stop.other))
        return true;
    double now = app_now();
    if (now >= stop.deadline)
        atomic_store(&stop.other, 1);
    if (stop.file && now - atomic_load(&stop.looked) > interval) {
        atomic_store(&stop.looked, now);
        if (access(stop.file, F_OK) == 0)
            atomic_store(&stop.other, 2);
    }
    return atomic_load(&stop.other) != 0;
}

const char *stop_reason(void)
{
    static char text[512];
    int number = stop.signal, other = atomic_load(&stop.other);
    if (number)
        snprintf(text, sizeof text, "signal %s",
                 number == SIGUSR1   ? "USR1"
                 : number == SIGTERM ? "TERM"
                                     : "INT");
    else if (other == 1)
        snprintf(text, sizeof text, "--max-time");
    else if (other == 2)
        snprintf(text, sizeof text, "the file %s", stop.file);
    else
        snprintf(text, sizeof text, "another rank");
    return text;
}

void stop_watch(io_journal_t *journal, int64_t unit)
{
    atomic_store(&watch.journal, journal);
    atomic_store(&watch.unit, unit);
}
