/* The output of a run and its journals: begun afresh, or gone on with. */
#ifndef APP_RESUME_H
#define APP_RESUME_H

#include "app/qr.h"

/* Lays the output out, or opens the one that an earlier run left (options->resume) when its
 * journals say the same as this run: run->output, run->journal, run->state, run->done_before, and
 * the figures of what is done in run->stats on rank 0. What was written last is read again; what
 * does not read as it was written is done again. GB10_ERR_EXISTS names what differs. Collective. */
gb10_status_t resume_open(qr_run_t *run, const io_spec_t *spec, const char *options_text,
                          gb10_error_t *err);

/* True when OUT is there, complete, and made from this input with these options: nothing is left to
 * do. GB10_ERR_EXISTS says what differs. On one rank. */
gb10_status_t resume_finished(const qr_run_t *run, const char *options_text, bool *finished,
                              gb10_error_t *err);

/* On rank 0 when all units are done: every unit has its record, and a sample of them (or all) reads
 * back as it was written. A shard that is not the last to end only sets run->left_open. */
gb10_status_t resume_verify(qr_run_t *run, bool all, gb10_error_t *err);

/* CRC32C of a unit's blocks, and huge_sum of its one matrix, as they are read from the file, a
 * piece at a time. */
gb10_status_t resume_unit_crc(qr_run_t *run, int64_t unit, uint32_t *crc, uint64_t *sum,
                              gb10_error_t *err);

/* "I/N", 1 <= I <= N, into run->shard and run->shards; GB10_ERR_USAGE. */
gb10_status_t resume_parse_shard(qr_run_t *run, gb10_error_t *err);

/* On rank 0 after a failure or a stop: removes OUT.part when there is nothing in it, else adds to
 * the message how to go on. */
void resume_abandon(qr_run_t *run, gb10_error_t *err);

/* On rank 0 when OUT has its name: the journals are not needed any more. */
gb10_status_t resume_clean(const qr_run_t *run, gb10_error_t *err);

#endif
