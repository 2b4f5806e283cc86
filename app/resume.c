#include "app/resume.h"

#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "app/format.h"
#include "io/crc.h"
#include "io/fault.h"
#include "kernels/core/alloc.h"

enum { PIECE = 8 << 20, SAMPLE = 4 };

/* ---- what decides the bytes of the output, as the journals keep it ---- */

static gb10_status_t make_identity(qr_run_t *run, const char *options_text, gb10_error_t *err)
{
    char fingerprint[17], huge[80];
    size_t size = 1024 + strlen(options_text);
    io_catalog_fingerprint(&run->catalog, fingerprint);
    huge_identity(run, huge, sizeof huge);
    gb10_status_t status = gb10_alloc(&run->identity, size, 1, "the run's identity", err);
    if (status == GB10_OK)
        snprintf(run->identity, size,
                 "fugu = %s (%s)\ninput bytes = %" PRId64 "\ninput changed = %" PRId64
                 "\ninput datasets = %s\noptions = %s\nbackend = %s\ninstruction set = %s\n"
                 "tuning = %s\nunit size = %" PRId64 "\n%s\n",
                 FUGU_VERSION, app_git(), run->catalog.file_size, run->catalog.mtime_ns,
                 fingerprint, options_text, run->backend, run->isa, run->stamp,
                 run->options->unit_size, huge);
    return status;
}

/* ---- units that are in the file ---- */

/* Room for reading back. */
typedef struct reader {
    gb10_unit_t unit;
    char *bytes;
    size_t capacity;
    uint64_t *sum; /* huge_sum of what is read, or NULL */
} reader_t;

static void reader_free(reader_t *r)
{
    gb10_free(r->unit.runs);
    gb10_free(r->bytes);
}

/* One kind of one run, in pieces, each handed on. */
typedef void piece_fn(void *ctx, const gb10_run_t *run, int64_t first, int64_t count,
                      const void *bytes, size_t size);

static gb10_status_t read_back(qr_run_t *run, reader_t *r, const gb10_run_t *part, io_kind_t kind,
                               piece_fn *take, void *ctx, gb10_error_t *err)
{
    const io_dataset_t *d = &run->catalog.datasets[part->dataset];
    int64_t bytes = io_kind_bytes(kind, d->dtype, d->m, d->n, run->options->nb, GB10_METRICS);
    int64_t step = bytes > 0 && bytes < PIECE ? PIECE / bytes : 1;
    gb10_status_t status = GB10_OK;
    for (int64_t at = 0; at < part->count; at += step) {
        int64_t count = part->count - at < step ? part->count - at : step;
        size_t size = (size_t)(count * bytes);
        GB10_TRY(gb10_grow(&r->bytes, &r->capacity, size + 1, 1, "reading back", err));
        GB10_TRY(
            io_read_back(run->output, kind, part->dataset, part->first + at, count, r->bytes, err));
        take(ctx, part, at, count, r->bytes, size);
    }
cleanup:
    return status;
}

/* All of one kind of one run, a matrix in pieces if need be. */
static gb10_status_t add_crc(qr_run_t *run, reader_t *r, const gb10_run_t *part, io_kind_t kind,
                             uint32_t *crc, gb10_error_t *err)
{
    const io_dataset_t *d = &run->catalog.datasets[part->dataset];
    int64_t bytes = io_kind_bytes(kind, d->dtype, d->m, d->n, run->options->nb, GB10_METRICS);
    int64_t end = (part->first + part->count) * bytes;
    gb10_status_t status = GB10_OK;
    GB10_TRY(gb10_grow(&r->bytes, &r->capacity, PIECE, 1, "reading back", err));
    for (int64_t at = part->first * bytes; at < end; at += PIECE) {
        int64_t size = end - at < PIECE ? end - at : PIECE;
        GB10_TRY(io_read_back_bytes(run->output, kind, part->dataset, at, size, r->bytes, err));
        *crc = io_crc32c(*crc, r->bytes, (size_t)size);
        if (r->sum)
            *r->sum += huge_sum(kind, d->dtype, at - part->first * bytes, r->bytes, size);
    }
cleanup:
    return status;
}

static gb10_status_t unit_crc(qr_run_t *run, reader_t *r, int64_t unit, uint32_t *crc,
                              gb10_error_t *err)
{
    gb10_status_t status = GB10_OK;
    *crc = 0;
    GB10_TRY(dist_unit(run->plan, unit, &r->unit, err));
    for (int64_t i = 0; i < r->unit.nruns; i++)
        for (int kind = 0; kind < IO_KINDS; kind++)
            if (run->kinds >> kind & 1u)
                GB10_TRY(add_crc(run, r, &r->unit.runs[i], (io_kind_t)kind, crc, err));
cleanup:
    return status;
}

gb10_status_t resume_unit_crc(qr_run_t *run, int64_t unit, uint32_t *crc, uint64_t *sum,
                              gb10_error_t *err)
{
    reader_t r = {.sum = sum};
    gb10_status_t status = unit_crc(run, &r, unit, crc, err);
    reader_free(&r);
    return status;
}

/* ---- the figures of what is done ---- */

typedef struct tally {
    qr_run_t *run;
    gb10_bucket_t bucket;
    uint8_t *info; /* of the run at work */
} tally_t;

static void keep_status(void *ctx, const gb10_run_t *part, int64_t first, int64_t count,
                        const void *bytes, size_t size)
{
    tally_t *t = ctx;
    (void)part;
    (void)count;
    memcpy(t->info + first, bytes, size);
}

static void add_metrics(void *ctx, const gb10_run_t *part, int64_t first, int64_t count,
                        const void *bytes, size_t size)
{
    tally_t *t = ctx;
    run_stats_t *stats = &t->run->stats;
    const io_dataset_t *d = &t->run->catalog.datasets[part->dataset];
    const double *metrics = bytes;
    (void)size;
    for (int64_t i = 0; i < count; i++, metrics += GB10_METRICS) {
        uint8_t info = t->info[first + i];
        stats_add(&stats->bucket[t->bucket], d->dtype, d->m, d->n, info, metrics,
                  !isnan(metrics[GB10_ORTHOGONALITY]));
        bad_matrix_t bad = {part->dataset, part->first + first + i, -1, -1, info, "", ""};
        if (info != GB10_INFO_OK && info != GB10_INFO_OK_ESCALATED)
            stats_list(stats, &bad);
    }
}

static gb10_status_t add_done(qr_run_t *run, reader_t *r, int64_t unit, gb10_error_t *err)
{
    gb10_status_t status = GB10_OK;
    tally_t t = {.run = run};
    GB10_TRY(dist_unit(run->plan, unit, &r->unit, err));
    t.bucket = r->unit.bucket;
    for (int64_t i = 0; i < r->unit.nruns; i++) {
        const gb10_run_t *part = &r->unit.runs[i];
        gb10_free(t.info);
        t.info = NULL;
        GB10_TRY(gb10_alloc(&t.info, (size_t)part->count, 1, "states of matrices", err));
        GB10_TRY(read_back(run, r, part, IO_STATUS, keep_status, &t, err));
        GB10_TRY(read_back(run, r, part, IO_METRICS, add_metrics, &t, err));
    }
cleanup:
    gb10_free(t.info);
    return status;
}

/* Whether a unit is this process's to do: units are dealt out to shards one by one. */
static bool is_mine(const qr_run_t *run, int64_t unit)
{
    return run->shards == 0 || unit % run->shards == run->shard;
}

/* What was written last is compared with its checksum; then all that is done is counted. */
static gb10_status_t look_again(qr_run_t *run, gb10_error_t *err)
{
    gb10_status_t status = GB10_OK;
    reader_t r = {.bytes = NULL};
    uint32_t crc;
    for (int64_t i = 0; i < dist_plan_units(run->plan); i++) {
        io_unit_state_t *s = &run->state[i];
        if (!is_mine(run, i)) {
            s->done = 1;
            continue;
        }
        if (s->done && s->recent) {
            GB10_TRY(unit_crc(run, &r, i, &crc, err));
            s->done = crc == s->crc;
            if (!s->done)
                app_log(&run->app, APP_WARN,
                        "unit %lld does not read as it was written; it is done again",
                        (long long)i);
        }
        if (s->done)
            GB10_TRY(add_done(run, &r, i, err));
        run->done_before += s->done;
    }
cleanup:
    reader_free(&r);
    return status;
}

/* ---- opening ---- */

/* On rank 0. */
static gb10_status_t open_or_create(qr_run_t *run, const io_spec_t *spec, int *last_run,
                                    gb10_error_t *err)
{
    gb10_status_t status = GB10_OK;
    char part[PATH_MAX];
    int64_t units = dist_plan_units(run->plan);
    snprintf(part, sizeof part, "%s.part", run->options->output);
    if (run->options->resume && access(part, F_OK) == 0)
        GB10_TRY(io_journal_read(part, run->identity, units, run->state, last_run, err));
    if (*last_run > 0) {
        GB10_TRY(io_output_reopen(&run->output, run->options->output, &run->catalog, spec, err));
        /* under the lock: nobody adds to them any more */
        GB10_TRY(io_journal_read(part, run->identity, units, run->state, last_run, err));
        return look_again(run, err);
    }
    if (run->options->resume)
        GB10_TRY(io_journal_bury(part, err));
    GB10_TRY(io_output_create(&run->output, run->options->output, &run->catalog, spec, err));
    GB10_TRY(io_journal_remove(part, INT_MAX, err));
cleanup:
    return status;
}

/* A shard lays the output out when it is the first, or opens it with the others. */
static gb10_status_t open_shared(qr_run_t *run, const io_spec_t *spec, int *last_run,
                                 gb10_error_t *err)
{
    enum { TRIES = 200 };
    char part[PATH_MAX];
    io_spec_t shared = *spec;
    int64_t units = dist_plan_units(run->plan);
    gb10_status_t status = GB10_OK;
    shared.shared = true;
    snprintf(part, sizeof part, "%s.part", run->options->output);
    for (int i = 0; i < TRIES; i++) {
        gb10_error_t why = {0};
        bool there = access(part, F_OK) == 0;
        status =
            there
                ? io_output_reopen(&run->output, run->options->output, &run->catalog, &shared, &why)
                : io_output_create(&run->output, run->options->output, &run->catalog, spec, &why);
        if (status != GB10_OK && status != GB10_ERR_EXISTS && status != GB10_ERR_FORMAT) {
            *err = why;
            return status;
        }
        if (there)
            GB10_TRY(io_journal_read(part, run->identity, units, run->state, last_run, err));
        if (status == GB10_OK && (!there || *last_run > 0))
            return look_again(run, err);
        io_output_close(run->output);
        run->output = NULL;
        if (there && *last_run == 0)
            GB10_TRY(io_journal_bury(part, err));
        usleep(50000);
    }
    return GB10_FAIL(err, GB10_ERR_EXISTS,
                     "%s can be neither made nor opened: another run has it, or a shard died. Try "
                     "again, with --overwrite alone if that does not help.",
                     part);
cleanup:
    return status;
}

/* What every rank needs of rank 0's knowledge. */
static gb10_status_t share(qr_run_t *run, int *last_run, gb10_error_t *err)
{
    const dist_team_t *team = &run->app.team;
    gb10_status_t status = GB10_OK;
    void *bytes = NULL;
    size_t size = 0, states = (size_t)dist_plan_units(run->plan) * sizeof *run->state;
    int origin;
    if (team->rank == 0 && team->size > 1)
        status = io_output_pack(run->output, &bytes, &size, err);
    GB10_TRY(dist_agree(team, status, err, &origin));
    GB10_TRY(dist_broadcast(team, &bytes, &size, err));
    if (team->rank != 0)
        status = io_output_attach(&run->output, &run->catalog, bytes, size, err);
    GB10_TRY(dist_agree(team, status, err, &origin));
    gb10_free(bytes);
    bytes = NULL;
    if (team->rank == 0) {
        size = states + sizeof *last_run;
        GB10_TRY(gb10_alloc(&bytes, size, 1, "states of units", err));
        memcpy(bytes, last_run, sizeof *last_run);
        memcpy((char *)bytes + sizeof *last_run, run->state, states);
    }
    GB10_TRY(dist_broadcast(team, &bytes, &size, err));
    memcpy(last_run, bytes, sizeof *last_run);
    memcpy(run->state, (const char *)bytes + sizeof *last_run, states);
cleanup:
    gb10_free(bytes);
    return status;
}

gb10_status_t resume_open(qr_run_t *run, const io_spec_t *spec, const char *options_text,
                          gb10_error_t *err)
{
    const dist_team_t *team = &run->app.team;
    int64_t units = dist_plan_units(run->plan);
    int origin, last_run = 0;
    gb10_status_t status = make_identity(run, options_text, err);
    if (status == GB10_OK)
        status = gb10_alloc(&run->state, (size_t)units, sizeof *run->state, "states of units", err);
    if (status == GB10_OK)
        status = gb10_alloc(&run->done, (size_t)units, 1, "states of units", err);
    if (status == GB10_OK && team->rank == 0)
        status = run->shards > 0 ? open_shared(run, spec, &last_run, err)
                                 : open_or_create(run, spec, &last_run, err);
    if (status == GB10_OK)
        status = gb10_alloc(&run->taken, (size_t)units, 1, "states of units", err);
    GB10_TRY(dist_agree(team, status, err, &origin));
    GB10_TRY(share(run, &last_run, err));
    for (int64_t i = 0; i < units; i++) {
        run->done[i] = run->state[i].done;
        run->taken[i] = run->done[i] || i >= dist_plan_huge(run->plan);
    }
    run->number = last_run + 1;
    int writer = run->shards > 0 ? run->shard : team->rank;
    status = io_journal_create(&run->journal, io_output_part(run->output), run->number, writer,
                               run->identity, units, err);
    if (status == GB10_OK && run->shards > 0)
        io_output_share(run->output);
    else if (status == GB10_OK && team->rank == 0 && last_run > 0)
        status = io_journal_compact(run->journal, run->state, err);
    GB10_TRY(dist_agree(team, status, err, &origin));
    if (run->done_before > 0)
        app_log(&run->app, APP_INFO, "going on with %s: %s of %s units are done",
                io_output_part(run->output), format_count(run->done_before), format_count(units));
cleanup:
    return status;
}

static gb10_status_t same(const qr_run_t *run, const char *what, const char *theirs,
                          const char *ours, gb10_error_t *err)
{
    if (theirs && strcmp(theirs, ours) == 0)
        return GB10_OK;
    return GB10_FAIL(err, GB10_ERR_EXISTS,
                     "%s is complete, but its %s is \"%s\", and now it is \"%s\". Use --overwrite "
                     "to replace it.",
                     run->options->output, what, theirs ? theirs : "", ours);
}

gb10_status_t resume_finished(const qr_run_t *run, const char *options_text, bool *finished,
                              gb10_error_t *err)
{
    io_result_t result = {.path = NULL};
    char fingerprint[17];
    gb10_status_t status = GB10_OK;
    *finished = false;
    if (!(run->options->resume || run->shards > 0) || access(run->options->output, F_OK) != 0)
        return GB10_OK;
    GB10_TRY(io_result_open(&result, run->options->output, err));
    io_catalog_fingerprint(&run->catalog, fingerprint);
    GB10_TRY(same(run, "input", result.fingerprint, fingerprint, err));
    GB10_TRY(same(run, "list of options", result.options, options_text, err));
    GB10_TRY(same(run, "backend", result.backend, run->backend, err));
    GB10_TRY(same(run, "instruction set", result.isa, run->isa, err));
    *finished = result.complete;
cleanup:
    io_result_close(&result);
    return status;
}

/* ---- the end ---- */

static gb10_status_t compare(qr_run_t *run, reader_t *r, int64_t unit, gb10_error_t *err)
{
    uint32_t crc = 0;
    gb10_status_t status = unit_crc(run, r, unit, &crc, err);
    if (status != GB10_OK || crc == run->state[unit].crc)
        return status;
    status = io_journal_undone(run->journal, unit, err);
    if (status != GB10_OK)
        return status;
    const gb10_run_t *first = &r->unit.runs[0];
    return GB10_FAIL(err, GB10_ERR_FILE,
                     "%s: unit %lld (from %s[%lld] on) does not read as it was written: the disk "
                     "or the memory of this machine is at fault.",
                     io_output_part(run->output), (long long)unit,
                     run->catalog.datasets[first->dataset].name, (long long)first->first);
}

/* Of several shards that find everything done, one gets the output for itself. */
static bool last_of_all(qr_run_t *run)
{
    enum { TRIES = 100 };
    for (int i = 0; i < TRIES; i++) {
        if (access(io_output_part(run->output), F_OK) != 0)
            return false; /* another one has finished it */
        if (io_output_claim(run->output))
            return access(io_output_part(run->output), F_OK) == 0;
        usleep(20000 + 10000 * (useconds_t)(run->shard % 7));
    }
    return false;
}

gb10_status_t resume_parse_shard(qr_run_t *run, gb10_error_t *err)
{
    const char *text = run->options->shard;
    int end = 0;
    if (!text)
        return GB10_OK;
    if (sscanf(text, "%d/%d%n", &run->shard, &run->shards, &end) != 2 || text[end] ||
        run->shard < 1 || run->shard > run->shards)
        return GB10_FAIL(err, GB10_ERR_USAGE, "--shard: '%s' is not I/N, part I of N, such as 3/16",
                         text);
    run->shard--;
    return GB10_OK;
}

gb10_status_t resume_verify(qr_run_t *run, bool all, gb10_error_t *err)
{
    gb10_status_t status = GB10_OK;
    reader_t r = {.bytes = NULL};
    int64_t units = dist_plan_units(run->plan), missing = 0, step = all ? 1 : units / SAMPLE + 1;
    int last_run;
    GB10_TRY(io_journal_read(io_output_part(run->output), run->identity, units, run->state,
                             &last_run, err));
    for (int64_t i = 0; i < units; i++)
        missing += !run->state[i].done;
    if (run->shards > 0 && (missing > 0 || !last_of_all(run))) {
        run->left_open = true;
        goto cleanup;
    }
    if (missing > 0) {
        status = GB10_FAIL(err, GB10_ERR_INTERNAL, "%s: %lld of %lld units have no record",
                           io_output_part(run->output), (long long)missing, (long long)units);
        goto cleanup;
    }
    for (int64_t i = 0; i < units; i += step)
        GB10_TRY(compare(run, &r, i, err));
cleanup:
    reader_free(&r);
    return status;
}

void resume_abandon(qr_run_t *run, gb10_error_t *err)
{
    int64_t done = 0, units;
    int last_run = 0;
    gb10_error_t ignored = {0};
    if (!run->output || !run->state)
        return;
    units = dist_plan_units(run->plan);
    const char *part = io_output_part(run->output);
    gb10_status_t status =
        io_journal_read(part, run->identity, units, run->state, &last_run, &ignored);
    for (int64_t i = 0; i < units; i++)
        done += run->state[i].done;
    if (status == GB10_OK && done == 0 && run->shards == 0) {
        io_output_discard(run->output);
        io_journal_remove(part, last_run, &ignored);
    }
    size_t length = strlen(err->message);
    if (done == 0)
        return;
    snprintf(err->message + length, sizeof err->message - length,
             " %s of %s units are done and kept: use --resume to go on.", format_count(done),
             format_count(units));
}

gb10_status_t resume_clean(const qr_run_t *run, gb10_error_t *err)
{
    char part[PATH_MAX];
    int pretend = io_fault(IO_FAULT_CLEAN);
    snprintf(part, sizeof part, "%s.part", run->options->output);
    if (pretend)
        return GB10_FAIL(err, GB10_ERR_FILE, "%s: its journals cannot be removed: %s.",
                         run->options->output, strerror(pretend));
    return io_journal_remove(part, INT_MAX, err);
}
