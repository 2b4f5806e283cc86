/* Requests to stop at the next unit boundary: a signal, a time limit, a file. And a last word to
 * the journal when the program itself fails. */
#ifndef APP_STOP_H
#define APP_STOP_H

#include <stdbool.h>
#include <stdint.h>

#include "io/journal.h"
#include "kernels/core/status.h"

/* USR1, TERM and INT set a flag; a second INT or TERM ends the program at once. Before MPI_Init. */
void stop_install(void);

/* max_time: "90", "90s", "30m", "2h", "1d", "H:M:S", "auto" (a minute before the end of the Slurm
 * job), or NULL. file: whose presence stops the run, or NULL. Time counts from stop_install. */
gb10_status_t stop_limits(const char *max_time, const char *file, gb10_error_t *err);

/* Seconds of a duration as above; negative when it is none. */
double stop_duration(const char *text);

/* True from the moment that a request is seen. Any thread. */
bool stop_asked(void);
/* What it was: "signal TERM", "--max-time", "the file X". */
const char *stop_reason(void);

/* This unit is being factored; -1: none. SIGSEGV, SIGBUS, SIGFPE, SIGILL and SIGABRT note it in the
 * journal before the program dies of them. */
void stop_watch(io_journal_t *journal, int64_t unit);

#endif
