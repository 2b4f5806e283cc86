#include "app/bench.h"

#include "kernels/core/alloc.h"
#include "kernels/core/rng.h"

static gb10_status_t open_engine(bench_engine_t *engine, const char *backend, const char *text,
                                 const char *path, int threads, gb10_error_t *err)
{
    gb10_status_t status = GB10_OK;
    GB10_TRY(gb10_create(&engine->handle, backend, err));
    GB10_TRY(app_set_tuning(engine->handle, text, path, err));
    status = gb10_set_threads(engine->handle, threads);
    if (status != GB10_OK)
        *err = *gb10_last_error(engine->handle);
cleanup:
    return status;
}

gb10_status_t bench_ours_open(bench_ours_t *ours, const char *backend, const char *tuning,
                              int threads, gb10_error_t *err)
{
    void *text = NULL;
    size_t size;
    gb10_status_t status = GB10_OK;
    *ours = (bench_ours_t){.A = NULL};
    if (tuning)
        GB10_TRY(app_read_tuning(tuning, &text, &size, err));
    GB10_TRY(open_engine(&ours->team, backend, text, tuning, threads, err));
    if (gb10_threads(ours->team.handle) > 1)
        GB10_TRY(open_engine(&ours->single, backend, text, tuning, 1, err));
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
    gb10_destroy(ours->team.handle);
    gb10_destroy(ours->single.handle);
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

gb10_status_t bench_ours_prepare(bench_ours_t *ours, const bench_case_t *c,
                                 const bench_case_t *single, gb10_error_t *err)
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
    ours->team = (bench_engine_t){.handle = ours->team.handle, .c = *c};
    ours->single = (bench_engine_t){.handle = ours->single.handle, .c = *single};
    return status;
}

/* Matrices [first, first + count) of the batch. */
static gb10_status_t factor(const bench_ours_t *ours, const bench_engine_t *engine, int64_t first,
                            int64_t count, gb10_times_t *times, gb10_error_t *err)
{
    const bench_case_t *c = &engine->c;
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
    gb10_status_t status = gb10_geqrf(engine->handle, &args);
    if (status != GB10_OK && err)
        *err = *gb10_last_error(engine->handle);
    return status;
}

gb10_status_t bench_ours_run(bench_ours_t *ours, bench_engine_t *engine, int64_t matrices,
                             gb10_times_t *times, double *seconds, gb10_error_t *err)
{
    const bench_case_t *c = &engine->c;
    int threads = ours->team.c.threads;
    gb10_status_t status = GB10_OK;
    double start = bench_clock(threads);
    for (int64_t left = matrices, now; left > 0 && status == GB10_OK; left -= now) {
        now = c->count - engine->next < left ? c->count - engine->next : left;
        status = factor(ours, engine, engine->next, now, times, err);
        engine->next = (engine->next + now) % c->count;
    }
    *seconds = bench_clock(threads) - start;
    int64_t last = (engine->next + c->count - 1) % c->count;
    if (status == GB10_OK && ours->info[last] != GB10_INFO_OK)
        return GB10_FAIL(err, GB10_ERR_INTERNAL, "matrix %lld of %lldx%lld %c got status %d",
                         (long long)last, (long long)c->m, (long long)c->n,
                         gb10_dtype_letter(c->dtype), ours->info[last]);
    return status;
}
