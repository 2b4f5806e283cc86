/* Journals of an output that is being written: which units of the plan are on the disk.
 *
 * Beside OUT.h5.part, every rank of every run appends to a file of its own,
 * OUT.h5.part.journal.RUN.WRITER. A unit's record is written only when its data is on the disk, so
 * the union of all valid records is what need not be done again. A journal that a kill left with
 * half a record at its end is read up to there. FORMAT.md has the bytes. */
#ifndef IO_JOURNAL_H
#define IO_JOURNAL_H

#include <stdbool.h>
#include <stdint.h>

#include "kernels/core/status.h"

/* What the journals say of a unit. */
typedef struct io_unit_state {
    uint32_t crc; /* CRC32C of its blocks: runs in order, in each the kinds in order     */
    int32_t done_run, undone_run; /* the last runs that said so; 0: none                   */
    uint8_t done;    /* its data was on the disk                                            */
    uint8_t recent;  /* among the last records of a journal: worth another look             */
    uint8_t crashes; /* runs that ended, by a fault of the program itself, while it was factored */
} io_unit_state_t;

/* All journals of `part` together. identity: lines "name = value", which say what decides the
 * output's bytes; when a journal's differ, GB10_ERR_EXISTS names the first. state has `units`
 * elements and is overwritten. *last_run: the largest run number, 0 without journals. */
gb10_status_t io_journal_read(const char *part, const char *identity, int64_t units,
                              io_unit_state_t *state, int *last_run, gb10_error_t *err);

/* A new journal, on the disk with its header when this returns. */
typedef struct io_journal io_journal_t;
gb10_status_t io_journal_create(io_journal_t **journal, const char *part, int run, int writer,
                                const char *identity, int64_t units, gb10_error_t *err);

/* Appends and syncs once: these units are done (their data has been synced). */
typedef struct io_journal_entry {
    int64_t unit;
    uint32_t crc; /* as in io_unit_state_t */
} io_journal_entry_t;
gb10_status_t io_journal_done(io_journal_t *journal, const io_journal_entry_t *entries,
                              int64_t count, gb10_error_t *err);

/* The unit is not done after all. */
gb10_status_t io_journal_undone(io_journal_t *journal, int64_t unit, gb10_error_t *err);

/* The records of all that is done, and the crashes, in one piece; then the journals of earlier runs
 * are removed. */
gb10_status_t io_journal_compact(io_journal_t *journal, const io_unit_state_t *state,
                                 gb10_error_t *err);

/* From a signal handler: this unit was being factored when the program failed. */
void io_journal_crashed(io_journal_t *journal, int64_t unit);

void io_journal_close(io_journal_t *journal); /* NULL allowed */

/* Removes a `part` that has no journal and that nobody holds: its maker died before the layout was
 * whole. One that is in use, or has a journal by now, stays. */
gb10_status_t io_journal_bury(const char *part, gb10_error_t *err);

/* Removes the journals of `part` of runs up to last_run. */
gb10_status_t io_journal_remove(const char *part, int last_run, gb10_error_t *err);

#endif
