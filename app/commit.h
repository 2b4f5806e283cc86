/* A thread that makes written units last: it syncs the output and then records them in the journal,
 * as many at a time as were written meanwhile, so that writing never waits for the disk's flush. */
#ifndef APP_COMMIT_H
#define APP_COMMIT_H

#include <stdint.h>

#include "io/io.h"
#include "io/journal.h"

typedef struct commit commit_t;

/* output and journal must outlive it. */
gb10_status_t commit_create(commit_t **commit, io_output_t *output, io_journal_t *journal,
                            gb10_error_t *err);

/* All blocks of the unit are written; crc as in io_unit_state_t. Returns the failure of an earlier
 * commit, if there was one. */
gb10_status_t commit_unit(commit_t *commit, int64_t unit, uint32_t crc, gb10_error_t *err);

/* Waits until every unit is recorded, ends the thread and frees it (NULL allowed); the first
 * failure. */
gb10_status_t commit_finish(commit_t *commit, gb10_error_t *err);

#endif
