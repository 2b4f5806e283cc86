#include "app/bench.h"

#include "kernels/core/alloc.h"
#include "kernels/core/rng.h"
#include "kernels/core/stopwatch.h"

gb10_status_t bench_ours_open(bench_ours_t *ours, const char *backend, const char *tuning,
                              gb10_error_t *err)
{
    void *text = NULL;
    size_t size;
    gb10_status_t status = GB10_OK;
    *ours = (bench_ours_t){.handle = NULL};
    if (tuning)
        GB10_TRY(app_read_tuning(tuning, &text, &size, err));
    GB10_TRY(gb10_create(&ours->handle, backend, err));
    GB10_TRY(app_set_tuning(ours->handle, text, tuning, err));
cleanup:
    gb10_free(text);
    return status;
}

void bench_ours_close(bench_ours_t *ours)
{
    gb10_free(ours->A);
    gb10_free(ours->V);
    gb10_free(ours->T);
    gb10_free(ours->R);
    gb10_free(ours->tau);
    gb10_free(ours->info);
    gb10_destroy(ours->handle);
}

static void fill(gb10_dtype_t dtype, void *data, int64_t elements)
{
    enum { PERIOD = 65521 }; /* a prime: neighbours in the batch differ */
    int64_t numbers = gb10_dtype_is_complex(dtype) ? 2 * elements : elements;
    for (int64_t i = 0; i < numbers; i++)
        if (gb10_dtype_is_double(dtype))
            ((double *)data)[i] =
                i < PERIOD ? gb10_uniform(1, 0, (uint64_t)i) - 0.5 : ((double *)data)[i - PERIOD];
        else
            ((float *)data)[i] = i < PERIOD ? (float)gb10_uniform(1, 0, (uint64_t)i) - 0.5F
                                            : ((float *)data)[i - PERIOD];
}

gb10_status_t bench_ours_prepare(bench_ours_t *ours, const bench_case_t *c, gb10_error_t *err)
{
    int64_t k = c->m < c->n ? c->m : c->n, b = c->nb < k ? c->nb : k;
    size_t e = gb10_dtype_size(c->dtype), count = (size_t)c->count;
    const struct {
        void *p;
        size_t need;
    } want[] = {{&ours->A, (size_t)(c->m * c->n) * e}, {&ours->V, (size_t)(c->m * k) * e},
                {&ours->T, (size_t)(b * k) * e},       {&ours->R, (size_t)(k * c->n) * e},
                {&ours->tau, (size_t)k * e},           {&ours->info, 1}};
    gb10_status_t status = GB10_OK;
    for (size_t i = 0; i < sizeof want / sizeof *want && status == GB10_OK; i++)
        status =
            gb10_grow(want[i].p, &ours->capacity[i], want[i].need * count, 1, "the batch", err);
    if (status == GB10_OK)
        fill(c->dtype, ours->A, c->m * c->n * c->count);
    ours->c = *c;
    ours->next = 0;
    ours->timing = (bench_timing_t){.n = 0};
    return status;
}

/* Matrices [first, first + count) of the batch. */
static gb10_status_t factor(bench_ours_t *ours, int64_t first, int64_t count, gb10_times_t *times,
                            gb10_error_t *err)
{
    const bench_case_t *c = &ours->c;
    int64_t k = c->m < c->n ? c->m : c->n, b = c->nb < k ? c->nb : k;
    gb10_view_t A = gb10_view_rows(c->dtype, ours->A, c->m, c->n, count);
    gb10_view_t V = gb10_view_rows(c->dtype, ours->V, c->m, k, count);
    gb10_view_t T = gb10_view_rows(c->dtype, ours->T, b, k, count);
    gb10_view_t R = gb10_view_rows(c->dtype, ours->R, k, c->n, count);
    gb10_view_t tau = gb10_view_rows(c->dtype, ours->tau, k, 1, count);
    gb10_view_t *const all[] = {&A, &V, &T, &R, &tau};
    for (int i = 0; i < 5; i++)
        all[i]->base = gb10_view_at(all[i], first);
    gb10_geqrf_args_t args = {.A = &A,
                              .V = &V,
                              .T = &T,
                              .R = &R,
                              .tau = &tau,
                              .nb = c->nb,
                              .info = ours->info + first,
                              .times = times};
    if (gb10_geqrf(ours->handle, &args) != GB10_OK) {
        if (err && err->status == GB10_OK)
            *err = *gb10_last_error(ours->handle);
        return gb10_last_error(ours->handle)->status;
    }
    return GB10_OK;
}

gb10_status_t bench_ours_run(bench_ours_t *ours, int64_t matrices, gb10_times_t *times,
                             double *seconds, gb10_error_t *err)
{
    gb10_status_t status = GB10_OK;
    double start = gb10_seconds();
    for (int64_t left = matrices, now; left > 0 && status == GB10_OK; left -= now) {
        now = ours->c.count - ours->next < left ? ours->c.count - ours->next : left;
        status = factor(ours, ours->next, now, times, err);
        ours->next = (ours->next + now) % ours->c.count;
    }
    *seconds = gb10_seconds() - start;
    int64_t last = (ours->next + ours->c.count - 1) % ours->c.count;
    if (status == GB10_OK && ours->info[last] != GB10_INFO_OK)
        return GB10_FAIL(err, GB10_ERR_INTERNAL, "matrix %lld of %lldx%lld %c got status %d",
                         (long long)last, (long long)ours->c.m, (long long)ours->c.n,
                         gb10_dtype_letter(ours->c.dtype), ours->info[last]);
    return status;
}
