/* The ScaLAPACK check: a few matrices of each bucket are factored again by other people's code. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "app/qr.h"
#include "app/factors.h"
#include "app/sign.h"
#include "kernels/core/alloc.h"
#include "kernels/core/rng.h"

/* WITNESS: how many times our gate ScaLAPACK's backward error may be. */
enum { TRIES_PER_MATRIX = 4, REASON = 160, WITNESS = 4 };

/* One matrix: A, our V, T, R, tau as the file holds them, and theirs. */
typedef struct sample {
    const io_dataset_t *set;
    int64_t dataset, index;
    void *A, *ours[FACTORS], *packed, *tau;
    int8_t *sign;
    uint8_t status;
} sample_t;

static gb10_status_t measure(gb10_handle_t *handle, const gb10_view_t *A, const gb10_view_t *f,
                             int64_t nb, const char **failed, double *error)
{
    uint8_t level = pipeline_deep_level(A->m, A->n), info = GB10_INFO_OK;
    double metrics[GB10_METRICS];
    gb10_check_args_t args = {.A = A,
                              .V = &f[FACTOR_V],
                              .T = &f[FACTOR_T],
                              .R = &f[FACTOR_R],
                              .tau = &f[FACTOR_TAU],
                              .nb = nb,
                              .level = &level,
                              .info = &info,
                              .metrics = metrics,
                              .failed = failed};
    *failed = NULL;
    gb10_status_t status = gb10_check(handle, &args);
    int metric = level == GB10_CHECK_FULL ? GB10_BACKWARD_ERROR : GB10_PROBE_ERROR;
    *error = metrics[metric] / gb10_gate(metric, A->dtype, A->m, A->n);
    return status;
}

gb10_status_t cross_compare(gb10_dtype_t dtype, int64_t m, int64_t n, int64_t nb, const void *A,
                            const void *const ours[FACTORS], const void *packed, const void *tau,
                            bool *agree, char *reason, gb10_error_t *err)
{
    gb10_handle_t *handle = NULL;
    void *theirs[FACTORS] = {0};
    const char *our_gate = NULL, *their_gate = NULL;
    double our_error = NAN, their_error = NAN;
    gb10_view_t a = gb10_view_rows(dtype, (void *)(uintptr_t)A, m, n, 1), f[FACTORS], g[FACTORS];
    gb10_r_difference_t difference;
    gb10_compare_r_args_t compare = {&a, &f[FACTOR_R], &g[FACTOR_R], &difference};
    gb10_status_t status = GB10_OK;
    *agree = false;
    *reason = 0;
    GB10_TRY(gb10_create(&handle, "cpu-ref", err));
    for (int i = 0; i < FACTORS; i++)
        GB10_TRY(gb10_alloc(&theirs[i], (size_t)factors_bytes(dtype, m, n, nb, i), 1,
                            "ScaLAPACK factors", err));
    factors_unpack(dtype, m, n, 1, packed, theirs[FACTOR_V], theirs[FACTOR_R]);
    memcpy(theirs[FACTOR_TAU], tau, (size_t)factors_bytes(dtype, m, n, nb, FACTOR_TAU));
    factors_views(dtype, m, n, nb, 1, ours, f);
    factors_views(dtype, m, n, nb, 1, (const void *const *)theirs, g);
    gb10_form_t_args_t form = {
        .V = &g[FACTOR_V], .tau = &g[FACTOR_TAU], .T = &g[FACTOR_T], .nb = nb};
    GB10_TRY(gb10_form_t(handle, &form));
    GB10_TRY(measure(handle, &a, f, nb, &our_gate, &our_error));
    GB10_TRY(measure(handle, &a, g, nb, &their_gate, &their_error));
    GB10_TRY(gb10_compare_r(handle, &compare));
    if (our_gate)
        snprintf(reason, REASON, "fugu's result misses the gate %s", our_gate);
    else if (!(their_error <= WITNESS))
        snprintf(reason, REASON, "ScaLAPACK's backward error is %.2g times the gate, fugu's %.2g",
                 their_error, our_error);
    else if (!difference.agree)
        snprintf(reason, REASON,
                 "column norms of R differ by %.2g of |a_j| (gate %.2g), |R| by %.2g of |A| "
                 "(gate %.2g)",
                 difference.worst_norm, 32 * gb10_dtype_u(dtype), difference.worst_abs,
                 difference.bound);
    else
        *agree = true;
cleanup:
    if (status != GB10_OK && handle && err && err->status == GB10_OK)
        *err = *gb10_last_error(handle);
    for (int i = 0; i < FACTORS; i++)
        gb10_free(theirs[i]);
    gb10_destroy(handle);
    return status;
}

/* The try-th candidate of a bucket: a fixed pseudo-random place among its matrices. Huge ones are
 * ScaLAPACK's anyway. */
static bool find_candidate(const qr_run_t *run, gb10_bucket_t bucket, int64_t try, int64_t *dataset,
                           int64_t *index)
{
    int64_t total = dist_plan_bucket_matrices(run->plan, bucket);
    if (total == 0 || try >= total || bucket == GB10_HUGE)
        return false;
    /* One place in each of equal shares of the bucket. */
    int64_t tries = TRIES_PER_MATRIX * run->options->scalapack, share = total / tries;
    uint64_t jump = gb10_random(1, (uint64_t)bucket, (uint64_t)try);
    int64_t at = share > 0 ? try * share + (int64_t)(jump % (uint64_t)share) : try;
    for (int64_t d = 0; d < run->catalog.ndatasets; d++) {
        const io_dataset_t *set = &run->catalog.datasets[d];
        if (dist_plan_bucket(run->plan, d) != bucket)
            continue;
        if (at < set->count) {
            *dataset = d;
            *index = at;
            return set->m > 0 && set->n > 0;
        }
        at -= set->count;
    }
    return false;
}

static void free_sample(sample_t *s)
{
    for (int f = 0; f < FACTORS; f++)
        gb10_free(s->ours[f]);
    gb10_free(s->A);
    gb10_free(s->packed);
    gb10_free(s->tau);
    gb10_free(s->sign);
}

/* Factors that the file does not hold are computed again: the same bits. */
static gb10_status_t recompute(qr_run_t *run, sample_t *s, gb10_error_t *err)
{
    gb10_handle_t *handle = NULL;
    gb10_view_t f[FACTORS];
    gb10_view_t a = gb10_view_rows(s->set->dtype, s->A, s->set->m, s->set->n, 1);
    uint8_t info = 0;
    gb10_status_t status = gb10_create(&handle, run->backend, err);
    if (status != GB10_OK)
        return status;
    factors_views(s->set->dtype, s->set->m, s->set->n, run->options->nb, 1,
                  (const void *const *)s->ours, f);
    gb10_geqrf_args_t args = {.A = &a,
                              .V = &f[FACTOR_V],
                              .T = &f[FACTOR_T],
                              .R = &f[FACTOR_R],
                              .tau = &f[FACTOR_TAU],
                              .nb = run->options->nb,
                              .info = &info};
    status = gb10_geqrf(handle, &args);
    if (status != GB10_OK && err->status == GB10_OK)
        *err = *gb10_last_error(handle);
    gb10_destroy(handle);
    return status;
}

/* True when the matrix is one that ScaLAPACK can be a witness for: its norms are not safe near the
 * ends of the range. Every column is zero or has its largest entry well inside. */
static bool within_its_range(const sample_t *s)
{
    const io_dataset_t *d = s->set;
    int64_t parts = gb10_dtype_is_complex(d->dtype) ? 2 : 1;
    double low = gb10_dtype_is_double(d->dtype) ? 0x1p-400 : 0x1p-40, high = 1 / low;
    for (int64_t j = 0; j < d->n; j++) {
        double top = 0;
        for (int64_t i = 0; i < d->m; i++)
            for (int64_t q = 0; q < parts; q++) {
                int64_t at = (i * d->n + j) * parts + q;
                top = fmax(top, fabs(gb10_number_at(d->dtype, s->A, at)));
            }
        if (top > 0 && !(top >= low && top <= high))
            return false;
    }
    return true;
}

/* On rank 0: what the file holds of the sample. A stays NULL when it is not fit for the check. */
static gb10_status_t load_sample(qr_run_t *run, sample_t *s, gb10_error_t *err)
{
    const io_dataset_t *d = s->set;
    size_t matrix = (size_t)(d->m * d->n) * gb10_dtype_size(d->dtype);
    int64_t k = d->m < d->n ? d->m : d->n;
    gb10_status_t status = GB10_OK;
    GB10_TRY(io_read_back(run->output, IO_STATUS, s->dataset, s->index, 1, &s->status, err));
    if (s->status != GB10_INFO_OK && s->status != GB10_INFO_OK_ESCALATED)
        return GB10_OK;
    GB10_TRY(gb10_alloc(&s->A, matrix, 1, "a sampled matrix", err));
    GB10_TRY(gb10_alloc(&s->packed, matrix, 1, "a sampled matrix", err));
    GB10_TRY(gb10_alloc(&s->tau, (size_t)k, gb10_dtype_size(d->dtype), "tau", err));
    GB10_TRY(gb10_alloc(&s->sign, (size_t)k, 1, "signs", err));
    GB10_TRY(io_read(run->reader, s->dataset, s->index, 1, s->A, err));
    if (!within_its_range(s)) {
        gb10_free(s->A);
        s->A = NULL;
        return GB10_OK;
    }
    for (int f = 0; f < FACTORS; f++)
        GB10_TRY(gb10_alloc(&s->ours[f],
                            (size_t)factors_bytes(d->dtype, d->m, d->n, run->options->nb, f), 1,
                            "factors", err));
    GB10_TRY(recompute(run, s, err));
    for (int f = 0; f < FACTORS; f++)
        if (run->kinds >> factors_kind[f] & 1u)
            GB10_TRY(io_read_back(run->output, factors_kind[f], s->dataset, s->index, 1, s->ours[f],
                                  err));
    if (run->options->positive_diagonal && run->kinds >> IO_R & 1u) {
        gb10_view_t r = gb10_view_rows(d->dtype, s->ours[FACTOR_R], k, d->n, 1);
        GB10_TRY(io_read_back(run->output, IO_SIGN, s->dataset, s->index, 1, s->sign, err));
        sign_undo(&r, s->sign);
    }
cleanup:
    return status;
}

static void list_disagreement(cross_result_t *result, const sample_t *s, const char *reason)
{
    if (result->nlisted == BAD_LISTED)
        return;
    result->listed[result->nlisted].dataset = s->dataset;
    result->listed[result->nlisted].index = s->index;
    memcpy(result->listed[result->nlisted].reason, reason, REASON);
    result->nlisted++;
}

/* Factors one sample over all ranks. Rank 0 decides whether it is fit; *used tells everyone. */
static gb10_status_t check_one(qr_run_t *run, sample_t *s, bool *used, gb10_error_t *err)
{
    const io_dataset_t *d = s->set;
    const dist_team_t *team = &run->app.team;
    int64_t k = d->m < d->n ? d->m : d->n, block = k / (2 * (int64_t)team->size);
    int64_t go = 0;
    int origin;
    bool agree = false;
    char reason[REASON] = "";
    gb10_status_t status = team->rank == 0 ? load_sample(run, s, err) : GB10_OK;
    GB10_TRY(dist_agree(team, status, err, &origin));
    go = s->A != NULL;
    GB10_TRY(dist_sum(team, &go, 1, err));
    *used = go > 0;
    if (!*used)
        return GB10_OK;
    status = dist_scalapack_geqrf(team, d->dtype, d->m, d->n, block > 1 ? block : 1, s->A,
                                  s->packed, s->tau, err);
    if (status == GB10_OK && team->rank == 0)
        status =
            cross_compare(d->dtype, d->m, d->n, run->options->nb, s->A,
                          (const void *const *)s->ours, s->packed, s->tau, &agree, reason, err);
    GB10_TRY(dist_agree(team, status, err, &origin));
    if (team->rank == 0) {
        cross_bucket_t *b = &run->cross.bucket[dist_plan_bucket(run->plan, s->dataset)];
        b->checked++;
        b->agreed += agree;
        if (!agree)
            list_disagreement(&run->cross, s, reason);
    }
cleanup:
    return status;
}

gb10_status_t cross_check(qr_run_t *run, gb10_error_t *err)
{
    gb10_status_t status = GB10_OK;
    double start = app_now();
    for (int b = 0; b < GB10_BUCKETS && status == GB10_OK; b++) {
        int64_t done = 0;
        for (int64_t try = 0; status == GB10_OK && done < run->options->scalapack &&
                              try < TRIES_PER_MATRIX * run->options->scalapack;
             try++) {
            sample_t s = {0};
            bool used = false;
            if (!find_candidate(run, (gb10_bucket_t)b, try, &s.dataset, &s.index))
                continue;
            s.set = &run->catalog.datasets[s.dataset];
            status = check_one(run, &s, &used, err);
            done += used;
            free_sample(&s);
        }
    }
    run->cross_seconds = app_now() - start;
    return status;
}
