/* Matrices that no rank can hold: all ranks read, factor and write their blocks of one at a time.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "app/format.h"
#include "app/qr.h"
#include "app/resume.h"
#include "app/stop.h"
#include "io/fault.h"
#include "kernels/core/alloc.h"
#include "kernels/core/rng.h"
#include "kernels/core/view.h"

/* Stages of run_stats_t. */
enum { READ, FACTOR, CHECK, WRITE };

/* One matrix at work. */
typedef struct huge {
    qr_run_t *run;
    int64_t unit, dataset, index;
    const io_dataset_t *set;
    dist_matrix_t *matrix;
    void *rect;   /* DIST_RECT_MAX elements */
    uint64_t sum; /* of all that this rank wrote */
    uint8_t info;
    double metrics[GB10_METRICS];
    bad_matrix_t bad;
} huge_t;

static bool is_huge(const qr_run_t *run, int64_t dataset)
{
    return run->catalog.datasets[dataset].count > 0 &&
           dist_plan_bucket(run->plan, dataset) == GB10_HUGE;
}

/* ---- before the work ---- */

gb10_status_t huge_grids(qr_run_t *run, gb10_error_t *err)
{
    size_t n = (size_t)run->catalog.ndatasets;
    gb10_status_t status = GB10_OK;
    if (dist_plan_bucket_units(run->plan, GB10_HUGE) == 0)
        return GB10_OK;
    GB10_TRY(gb10_alloc(&run->grid, n, sizeof *run->grid, "process grids", err));
    GB10_TRY(gb10_alloc(&run->grid_text, n, DIST_GRID_TEXT, "process grids", err));
    for (size_t i = 0; i < n; i++) {
        const io_dataset_t *d = &run->catalog.datasets[i];
        if (is_huge(run, (int64_t)i))
            run->grid[i] = dist_grid_text(run->app.team.size, d->m, d->n, run->options->nb,
                                          run->grid_text + i * DIST_GRID_TEXT);
    }
cleanup:
    return status;
}

/* The fewest ranks that hold the matrix within the memory; 0: none do. */
static int ranks_for(const qr_run_t *run, const io_dataset_t *d)
{
    enum { RANKS_MOST = 65536 };
    for (int ranks = run->app.team.size + 1; ranks <= RANKS_MOST; ranks++) {
        int64_t bytes = dist_matrix_bytes(ranks, d->dtype, d->m, d->n, run->options->nb);
        if (bytes >= 0 && bytes <= run->memory)
            return ranks;
    }
    return 0;
}

static gb10_status_t too_large(const qr_run_t *run, int64_t dataset, int64_t bytes,
                               gb10_error_t *err)
{
    const io_dataset_t *d = &run->catalog.datasets[dataset];
    const int ranks = run->app.team.size, more = ranks_for(run, d);
    char advice[128] = "", needed[64] = "more than ScaLAPACK can count";
    if (bytes >= 0) {
        snprintf(needed, sizeof needed, "%lld bytes", (long long)bytes);
        snprintf(advice, sizeof advice, "--memory %lld", (long long)bytes);
    }
    if (more > 0)
        snprintf(advice + strlen(advice), sizeof advice - strlen(advice), "%s%d ranks%s",
                 *advice ? ", or " : "", more,
                 run->shards > 0          ? " instead of shards"
                 : run->app.team.size > 1 ? ""
                                          : " under mpirun");
    return GB10_FAIL(err, GB10_ERR_MEMORY,
                     "%s (%s, %c) does not fit --memory %lld with its results, and as one matrix "
                     "over %d rank%s it takes %s of each.%s%s%s",
                     d->name, format_shape(d->m, d->n), gb10_dtype_letter(d->dtype),
                     (long long)run->memory, ranks, ranks > 1 ? "s" : "", needed,
                     *advice ? " Give " : "", advice, *advice ? "." : "");
}

gb10_status_t huge_check(const qr_run_t *run, gb10_error_t *err)
{
    const char *absent = dist_scalapack_reason();
    for (int64_t i = 0; i < run->catalog.ndatasets; i++) {
        const io_dataset_t *d = &run->catalog.datasets[i];
        if (!is_huge(run, i))
            continue;
        if (absent)
            return GB10_FAIL(err, GB10_ERR_UNSUPPORTED,
                             "%s (%s, %c) takes %lld bytes with its results, more than --memory "
                             "%lld: it has to be spread over ranks by ScaLAPACK, which is %s. Give "
                             "that much memory, or use a build with ScaLAPACK.",
                             d->name, format_shape(d->m, d->n), gb10_dtype_letter(d->dtype),
                             (long long)pipeline_unit_bytes(
                                 run->batches[i].source_bytes + run->held_bytes[i], 1),
                             (long long)run->memory, absent);
        int64_t bytes =
            dist_matrix_bytes(run->app.team.size, d->dtype, d->m, d->n, run->options->nb);
        if (bytes < 0 || bytes > run->memory)
            return too_large(run, i, bytes, err);
    }
    return GB10_OK;
}

void huge_identity(const qr_run_t *run, char *text, size_t size)
{
    int64_t batches = 0;
    uint64_t hash = 0;
    for (int64_t i = 0; i < run->catalog.ndatasets; i++)
        if (is_huge(run, i)) {
            batches++;
            hash = gb10_mix64(hash + (uint64_t)i + 1);
        }
    snprintf(text, size, "datasets beyond --memory = %lld (%08x)", (long long)batches,
             (unsigned)(hash & 0xffffffffu));
}

/* ---- one matrix ---- */

static gb10_status_t read_blocks(huge_t *h, gb10_error_t *err)
{
    dist_rect_t rect = {0};
    gb10_status_t status = GB10_OK;
    while (dist_matrix_next(h->matrix, DIST_A, &rect)) {
        io_rect_t from = {rect.row, rect.column, rect.rows, rect.columns};
        GB10_TRY(io_read_rect(h->run->reader, h->dataset, h->index, &from, h->rect, err));
        dist_matrix_put(h->matrix, &rect, h->rect);
        h->run->stats.bytes_read +=
            rect.rows * rect.columns * (int64_t)gb10_dtype_size(h->set->dtype);
    }
cleanup:
    return status;
}

/* The gates that were measured, as kernels/check judges them. */
static void judge(huge_t *h, const dist_quality_t *q, bool norms, bool probe)
{
    const io_dataset_t *d = h->set;
    const char *missed = NULL;
    double *metrics = h->metrics;
    h->info = GB10_INFO_OK;
    if (q->overflow) {
        h->info = GB10_INFO_NOT_REPRESENTABLE;
        return;
    }
    if (norms) {
        metrics[GB10_COLUMN_NORM_ERROR] = q->column_norm_error;
        metrics[GB10_RDIAG_MIN] = q->rdiag_min;
        metrics[GB10_RDIAG_MAX] = q->rdiag_max;
    }
    if (probe)
        metrics[GB10_PROBE_ERROR] = q->probe[0] >= q->probe[1] ? q->probe[0] : q->probe[1];
    for (int part = 0; part < 2 && probe; part++) {
        int metric = part == 0 ? GB10_BACKWARD_ERROR : GB10_ORTHOGONALITY;
        if (!(q->probe[part] <= 4 * gb10_gate(metric, d->dtype, d->m, d->n)))
            missed = gb10_metric_names[GB10_PROBE_ERROR];
    }
    if (norms && !(q->column_norm_error <= gb10_gate(GB10_COLUMN_NORM_ERROR, d->dtype, d->m, d->n)))
        missed = gb10_metric_names[GB10_COLUMN_NORM_ERROR];
    if (q->broken)
        missed = "structure";
    if (missed) {
        h->info = GB10_INFO_GATE_MISSED;
        strncpy(h->bad.gate, missed, sizeof h->bad.gate - 1);
    }
}

/* Every rank is in it, or none: a failure from here on ends all. */
static gb10_status_t factor(huge_t *h, gb10_error_t *err)
{
    qr_run_t *run = h->run;
    bool norms = run->options->check != CHECK_NONE;
    bool probe = norms && run->options->check != CHECK_NORMS;
    bool nan = false;
    int origin;
    gb10_status_t status = GB10_OK;
    dist_quality_t quality;
    stop_watch(run->journal, h->unit);
    int pretend = io_fault(IO_FAULT_FACTOR);
    if (pretend)
        status =
            GB10_FAIL(err, GB10_ERR_MEMORY, "unit %lld: %s", (long long)h->unit, strerror(pretend));
    GB10_TRY(dist_agree(&run->app.team, status, err, &origin));
    GB10_TRY(dist_matrix_nonfinite(h->matrix, &h->bad.row, &h->bad.column, &nan, err));
    if (h->bad.row >= 0) {
        h->info = GB10_INFO_NONFINITE;
        memcpy(h->bad.what, nan ? "NaN" : "Inf", 4);
    } else {
        if (dist_geqrf(h->matrix, norms, probe, &quality, err) != GB10_OK)
            app_die(&run->app, err);
        judge(h, &quality, norms, probe);
    }
cleanup:
    stop_watch(run->journal, -1);
    return status;
}

static bool has_result(const huge_t *h)
{
    return h->info == GB10_INFO_OK || h->info == GB10_INFO_GATE_MISSED;
}

uint64_t huge_sum(io_kind_t kind, gb10_dtype_t dtype, int64_t at, const void *bytes, int64_t size)
{
    const int64_t word = kind == IO_SIGN ? 1 : gb10_dtype_size(dtype) % 8 == 0 ? 8 : 4;
    const char *p = bytes;
    uint64_t sum = 0;
    if (kind == IO_STATUS || kind == IO_METRICS)
        return 0;
    for (int64_t i = 0; i < size; i += word) {
        uint64_t value = 0, place = (uint64_t)(at + i) * IO_KINDS + (uint64_t)kind;
        memcpy(&value, p + i, (size_t)word);
        sum += gb10_mix64(value ^ place * 0x9e3779b97f4a7c15u);
    }
    return sum;
}

static void add_sum(huge_t *h, io_kind_t kind, const dist_rect_t *rect, int64_t element)
{
    const io_dataset_t *d = h->set;
    int64_t line = rect->columns * element, k = d->m < d->n ? d->m : d->n, width = d->n;
    if (kind == IO_V || kind == IO_T)
        width = k;
    else if (kind == IO_TAU || kind == IO_SIGN)
        width = 1;
    for (int64_t i = 0; i < rect->rows; i++)
        h->sum += huge_sum(kind, d->dtype, ((rect->row + i) * width + rect->column) * element,
                           (const char *)h->rect + i * line, line);
}

/* This rank's rectangles of one kind. */
static gb10_status_t write_kind(huge_t *h, io_kind_t kind, dist_part_t part, gb10_error_t *err)
{
    gb10_dtype_t dtype = h->set->dtype;
    size_t element = kind == IO_SIGN ? 1 : gb10_dtype_size(dtype);
    dist_rect_t rect = {0};
    gb10_status_t status = GB10_OK;
    while (dist_matrix_next(h->matrix, part, &rect)) {
        io_rect_t to = {rect.row, rect.column, rect.rows, rect.columns};
        size_t bytes = (size_t)(rect.rows * rect.columns) * element;
        gb10_view_t view = gb10_view_rows(dtype, h->rect, rect.rows, rect.columns, 1);
        if (has_result(h))
            dist_matrix_get(h->matrix, part, &rect, h->rect);
        else if (kind == IO_SIGN)
            memset(h->rect, 0, bytes);
        else
            gb10_view_fill_nan(&view, 0);
        GB10_TRY(io_write_rect(h->run->output, kind, h->dataset, h->index, &to, h->rect, err));
        add_sum(h, kind, &rect, (int64_t)element);
        h->run->stats.bytes_written += (int64_t)bytes;
    }
cleanup:
    return status;
}

/* The results of this rank, on the disk when it returns. */
static gb10_status_t write_blocks(huge_t *h, gb10_error_t *err)
{
    static const struct {
        io_kind_t kind;
        dist_part_t part;
    } written[] = {{IO_V, DIST_V},     {IO_T, DIST_T},           {IO_R, DIST_R},
                   {IO_TAU, DIST_TAU}, {IO_PACKED, DIST_PACKED}, {IO_SIGN, DIST_SIGN}};
    qr_run_t *run = h->run;
    gb10_status_t status = GB10_OK;
    for (size_t i = 0; i < sizeof written / sizeof *written; i++)
        if (run->kinds >> written[i].kind & 1u)
            GB10_TRY(write_kind(h, written[i].kind, written[i].part, err));
    if (run->app.team.rank == 0) {
        GB10_TRY(io_write(run->output, IO_STATUS, h->dataset, h->index, 1, &h->info, err));
        GB10_TRY(io_write(run->output, IO_METRICS, h->dataset, h->index, 1, h->metrics, err));
        run->stats.bytes_written += 1 + (int64_t)sizeof h->metrics;
    }
    GB10_TRY(io_output_sync(run->output, err));
cleanup:
    return status;
}

/* On rank 0 when the results of all ranks are on the disk. */
static gb10_status_t record(huge_t *h, gb10_error_t *err)
{
    qr_run_t *run = h->run;
    io_journal_entry_t entry = {.unit = h->unit};
    gb10_status_t status = GB10_OK;
    uint64_t sum = 0;
    GB10_TRY(resume_unit_crc(run, h->unit, &entry.crc, &sum, err));
    if (sum != h->sum)
        return GB10_FAIL(err, GB10_ERR_FILE,
                         "%s: %s[%lld] does not read as the ranks have written it: the file system "
                         "loses writes of several ranks to one page (NFS may), or the disk is at "
                         "fault.",
                         io_output_part(run->output), h->set->name, (long long)h->index);
    GB10_TRY(io_journal_done(run->journal, &entry, 1, err));
    stats_add(&run->stats.bucket[GB10_HUGE], h->set->dtype, h->set->m, h->set->n, h->info,
              h->metrics, 0);
    if (h->info != GB10_INFO_OK) {
        h->bad.info = h->info;
        stats_list(&run->stats, &h->bad);
    }
    run->stats.units++;
    run->stats.matrices++;
cleanup:
    return status;
}

/* Adds the seconds since *start to a stage, and starts again. */
static void count_time(huge_t *h, int stage, double *start)
{
    double now = app_now();
    h->run->stats.busy[stage] += now - *start;
    *start = now;
}

static gb10_status_t do_matrix(huge_t *h, gb10_error_t *err)
{
    qr_run_t *run = h->run;
    const io_dataset_t *d = h->set;
    const dist_team_t *team = &run->app.team;
    bool aside = run->state[h->unit].crashes >= CRASHES_MOST;
    double start = app_now();
    int origin;
    gb10_status_t status = GB10_OK;
    for (int i = 0; i < GB10_METRICS; i++)
        h->metrics[i] = NAN;
    h->info = GB10_INFO_SET_ASIDE;
    status = gb10_alloc(&h->rect, DIST_RECT_MAX, gb10_dtype_size(d->dtype), "a rectangle", err);
    GB10_TRY(dist_agree(team, status, err, &origin));
    GB10_TRY(dist_matrix_create(&h->matrix, team, d->dtype, d->m, d->n, run->options->nb,
                                run->options->positive_diagonal, err));
    if (!aside) {
        status = read_blocks(h, err);
        count_time(h, READ, &start);
        GB10_TRY(dist_agree(team, status, err, &origin));
        GB10_TRY(factor(h, err));
        count_time(h, FACTOR, &start);
    }
    status = write_blocks(h, err);
    GB10_TRY(dist_agree(team, status, err, &origin));
    int64_t sum = (int64_t)h->sum; /* modulo 2^64 */
    GB10_TRY(dist_sum(team, &sum, 1, err));
    h->sum = (uint64_t)sum;
    if (team->rank == 0)
        status = record(h, err);
    count_time(h, WRITE, &start);
    GB10_TRY(dist_agree(team, status, err, &origin));
cleanup:
    dist_matrix_free(h->matrix);
    gb10_free(h->rect);
    return status;
}

static gb10_status_t do_unit(qr_run_t *run, int64_t number, int64_t *bytes, gb10_error_t *err)
{
    gb10_unit_t unit = {0};
    int origin;
    gb10_status_t status = dist_unit(run->plan, number, &unit, err);
    GB10_TRY(dist_agree(&run->app.team, status, err, &origin));
    const gb10_run_t *only = &unit.runs[0];
    huge_t h = {.run = run,
                .unit = number,
                .dataset = only->dataset,
                .index = only->first,
                .set = &run->catalog.datasets[only->dataset],
                .bad = {only->dataset, only->first, -1, -1, 0, "", ""}};
    app_log(&run->app, APP_DEBUG, "%s[%lld] %s on %s", h.set->name, (long long)h.index,
            format_shape(h.set->m, h.set->n), run->grid[h.dataset]);
    *bytes += unit.bytes_in;
    GB10_TRY(do_matrix(&h, err));
cleanup:
    gb10_free(unit.runs);
    return status;
}

gb10_status_t huge_factor(qr_run_t *run, gb10_error_t *err)
{
    int64_t units = dist_plan_units(run->plan), first = dist_plan_huge(run->plan);
    dist_progress_t sum = {0};
    progress_t progress;
    gb10_status_t status = GB10_OK;
    for (int64_t i = first; i < units; i++)
        sum.units_total += !run->done[i];
    if (sum.units_total == 0)
        return GB10_OK;
    progress_start(&progress, &run->app, run->options, sum.units_total);
    for (int64_t i = first; i < units && status == GB10_OK; i++) {
        int64_t stop = stop_asked();
        if (run->done[i])
            continue;
        GB10_TRY(dist_sum(&run->app.team, &stop, 1, err));
        if (stop > 0)
            break;
        status = do_unit(run, i, &sum.bytes, err);
        sum.units++;
        sum.matrices++;
        sum.bad = stats_bad(&run->stats);
        progress_tick(&progress, &sum);
    }
cleanup:
    progress_end(&progress);
    return status;
}
