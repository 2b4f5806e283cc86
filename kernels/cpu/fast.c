/* The cpu backend: chooses the instruction set, holds the state of a handle. */
#include "kernels/cpu/fast.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/backend.h"
#include "kernels/core/alloc.h"
#include "kernels/core/view.h"

/* Of one handle. */
typedef struct state {
    const gb10_fast_t *build; /* the environment is read once */
    gb10_equipment_t equipment;
} state_t;

/* Lowest first; the position is the level that ranks agree on. */
static const gb10_fast_t *const builds[] = {
#if defined(__aarch64__)
    &gb10_fast_neon,
#else
    &gb10_fast_baseline,
#endif
#if defined(__x86_64__)
    &gb10_fast_avx2,
    &gb10_fast_avx512,
#endif
};
enum { BUILDS = sizeof builds / sizeof *builds };

static int runs_here(int level)
{
#if defined(__x86_64__)
    int avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
#if defined(GB10_TWICE) /* a build for tests: AVX-512's vectors from pairs of AVX2's */
    int avx512 = avx2;
#else
    int avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
                 __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl");
#endif
    if (level > 0)
        return level == 1 ? avx2 : avx2 && avx512;
#endif
    return level == 0;
}

static int level_of(const char *name)
{
    for (int i = 0; i < BUILDS; i++)
        if (strcmp(name, builds[i]->name) == 0)
            return i;
    return -1;
}

/* The best instruction set of this machine, or what FUGU_ISA names. */
static int chosen_level(void)
{
    const char *forced = getenv("FUGU_ISA");
    int level = BUILDS - 1;
    if (forced && *forced)
        return level_of(forced);
    while (!runs_here(level))
        level--;
    return level;
}

static const char *probe(void)
{
    int level = chosen_level();
    if (level < 0)
        return "FUGU_ISA names an instruction set that was not built";
    return runs_here(level) ? NULL : "FUGU_ISA names an instruction set this machine lacks";
}

static const char *isa(void)
{
    int level = chosen_level();
    return level < 0 ? "none" : builds[level]->name;
}

static const char *isa_at(int level)
{
    return level >= 0 && level < BUILDS ? builds[level]->name : NULL;
}

static gb10_status_t open_handle(void **state, gb10_error_t *err)
{
    state_t *s = NULL;
    int level = chosen_level();
    if (level < 0)
        return GB10_FAIL(err, GB10_ERR_UNSUPPORTED, "backend cpu: %s", probe());
    gb10_status_t status = gb10_alloc(&s, 1, sizeof *s, "state of backend cpu", err);
    if (status == GB10_OK)
        s->build = builds[level];
    *state = s;
    return status;
}

static void close_handle(void *state)
{
    gb10_free(state);
}

static void equip(void *state, const gb10_equipment_t *equipment)
{
    state_t *s = state;
    s->equipment = *equipment;
}

/* Fewer matrices than threads, and large enough: the team works on one matrix at a time. */
static int geqrf_whole(void *state, const void *args, int threads)
{
    enum { LARGE = 192 };
    const gb10_geqrf_args_t *a = args;
    (void)state;
    return a->A->count < threads && a->A->m >= LARGE && a->A->n >= LARGE;
}

static gb10_fast_call_t call_of(const state_t *s, const gb10_geqrf_args_t *a, gb10_crew_t *crew)
{
    return (gb10_fast_call_t){
        .args = a,
        .row = gb10_tuning_find(s->equipment.tuning, s->build->name, a->A->dtype, a->A->m, a->A->n),
        .crew = crew,
        .workers = gb10_crew_threads(crew)};
}

static size_t need(const state_t *s, const gb10_geqrf_args_t *args, gb10_crew_t *crew)
{
    gb10_fast_call_t call = call_of(s, args, crew);
    return s->build->need[args->A->dtype](&call);
}

static gb10_status_t submit(const state_t *s, const gb10_geqrf_args_t *args, gb10_crew_t *crew,
                            void *workspace)
{
    gb10_fast_call_t call = call_of(s, args, crew);
    s->build->geqrf[args->A->dtype](&call, workspace);
    return GB10_OK;
}

static size_t geqrf_need(void *state, const void *args)
{
    return need(state, args, NULL);
}

static int64_t geqrf_granule(void *state, const void *args)
{
    const state_t *s = state;
    const gb10_geqrf_args_t *a = args;
    gb10_fast_call_t call = call_of(s, a, NULL);
    return s->build->granule[a->A->dtype](&call);
}

static gb10_status_t geqrf_submit(void *state, const void *args, void *workspace, gb10_error_t *err)
{
    (void)err;
    return submit(state, args, NULL, workspace);
}

static size_t geqrf_whole_need(void *state, const void *args)
{
    const state_t *s = state;
    return need(s, args, s->equipment.crew);
}

static gb10_status_t geqrf_whole_submit(void *state, const void *args, void *workspace,
                                        gb10_error_t *err)
{
    const state_t *s = state;
    (void)err;
    return submit(s, args, s->equipment.crew, workspace);
}

/* ---- Q and rank-k updates ---- */

static size_t form_q_need(void *state, const void *args)
{
    const state_t *s = state;
    const gb10_form_q_args_t *a = args;
    return s->build->form_q_need[a->V->dtype](a);
}

static gb10_status_t form_q_submit(void *state, const void *args, void *workspace,
                                   gb10_error_t *err)
{
    const state_t *s = state;
    const gb10_form_q_args_t *a = args;
    (void)err;
    s->build->form_q[a->V->dtype](a, workspace);
    return GB10_OK;
}

static size_t apply_q_need(void *state, const void *args)
{
    const state_t *s = state;
    const gb10_apply_q_args_t *a = args;
    const size_t mine = s->build->apply_q_need[a->V->dtype](a);
    const size_t other = gb10_backend_cpu_ref.ops[GB10_OP_APPLY_Q].need(NULL, args);
    return mine > other ? mine : other;
}

static size_t syrk_need(void *state, const void *args)
{
    const state_t *s = state;
    const gb10_syrk_args_t *a = args;
    return s->build->syrk_need[a->C->dtype](a);
}

/* An operation on some matrices of a batch, and what of them it has left to cpu-ref. */
typedef void some_fn(const state_t *s, const void *args, int64_t b, int64_t count, void *workspace,
                     bool *left);
/* The operation on matrix b alone by cpu-ref. */
typedef gb10_status_t one_fn(const void *args, int64_t b, void *workspace, gb10_error_t *err);

static gb10_status_t by_parts(const state_t *s, const void *args, int64_t count, void *workspace,
                              some_fn *some, one_fn *one, gb10_error_t *err)
{
    gb10_status_t status = GB10_OK;
    bool left[FAST_TOGETHER];
    for (int64_t b = 0; b < count; b += FAST_TOGETHER) {
        const int64_t now = count - b < FAST_TOGETHER ? count - b : FAST_TOGETHER;
        some(s, args, b, now, workspace, left);
        for (int64_t i = 0; i < now && status == GB10_OK; i++)
            if (left[i])
                status = one(args, b + i, workspace, err);
    }
    return status;
}

static void apply_q_some(const state_t *s, const void *args, int64_t b, int64_t count,
                         void *workspace, bool *left)
{
    const gb10_apply_q_args_t *a = args;
    s->build->apply_q[a->V->dtype](a, b, count, workspace, left);
}

static gb10_status_t apply_q_one(const void *args, int64_t b, void *workspace, gb10_error_t *err)
{
    const gb10_apply_q_args_t *a = args;
    const gb10_view_t V = gb10_view_part(a->V, b, 1), T = gb10_view_part(a->T, b, 1);
    const gb10_view_t C = gb10_view_part(a->C, b, 1);
    gb10_apply_q_args_t one = *a;
    one.V = &V;
    one.T = &T;
    one.C = &C;
    return gb10_backend_cpu_ref.ops[GB10_OP_APPLY_Q].submit(NULL, &one, workspace, err);
}

static gb10_status_t apply_q_submit(void *state, const void *args, void *workspace,
                                    gb10_error_t *err)
{
    const gb10_apply_q_args_t *a = args;
    return by_parts(state, args, a->C->count, workspace, apply_q_some, apply_q_one, err);
}

static void syrk_some(const state_t *s, const void *args, int64_t b, int64_t count, void *workspace,
                      bool *left)
{
    const gb10_syrk_args_t *a = args;
    s->build->syrk[a->C->dtype](a, b, count, workspace, left);
}

static gb10_status_t syrk_one(const void *args, int64_t b, void *workspace, gb10_error_t *err)
{
    const gb10_syrk_args_t *a = args;
    const gb10_view_t A = gb10_view_part(a->A, b, 1), C = gb10_view_part(a->C, b, 1);
    gb10_syrk_args_t one = *a;
    one.A = &A;
    one.C = &C;
    return gb10_backend_cpu_ref.ops[GB10_OP_SYRK].submit(NULL, &one, workspace, err);
}

static gb10_status_t syrk_submit(void *state, const void *args, void *workspace, gb10_error_t *err)
{
    const gb10_syrk_args_t *a = args;
    return by_parts(state, args, a->C->n > 0 ? a->C->count : 0, workspace, syrk_some, syrk_one,
                    err);
}

static const char *repack_supports(const void *args)
{
    const gb10_repack_args_t *a = args;
    return a->scale ? "it does not scale while it copies" : NULL;
}

static gb10_status_t repack_submit(void *state, const void *args, void *workspace,
                                   gb10_error_t *err)
{
    (void)state;
    (void)workspace;
    (void)err;
    gb10_fast_repack(args);
    return GB10_OK;
}

const gb10_backend_t gb10_backend_cpu = {
    .name = "cpu",
    .priority = 10,
    .probe = probe,
    .isa = isa,
    .isa_at = isa_at,
    .open = open_handle,
    .close = close_handle,
    .equip = equip,
    .shared = 1,
    .ops = {[GB10_OP_GEQRF] = {.need = geqrf_need,
                               .submit = geqrf_submit,
                               .granule = geqrf_granule,
                               .whole = geqrf_whole,
                               .whole_need = geqrf_whole_need,
                               .whole_submit = geqrf_whole_submit},
            [GB10_OP_FORM_Q] = {.need = form_q_need, .submit = form_q_submit},
            [GB10_OP_APPLY_Q] = {.need = apply_q_need, .submit = apply_q_submit},
            [GB10_OP_SYRK] = {.need = syrk_need, .submit = syrk_submit},
            [GB10_OP_REPACK] = {.supports = repack_supports,
                                .submit = repack_submit,
                                .layouts = GB10_ALL_LAYOUTS}},
};
