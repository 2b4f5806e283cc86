/* fugu apply: Q of an output of `fugu qr`, times the matrices of another file, or Q itself. */
#include <string.h>

#include "app/batches.h"
#include "app/commands.h"
#include "app/context.h"
#include "app/factors.h"
#include "app/format.h"
#include "kernels/core/alloc.h"

enum { LEFT, RIGHT };

typedef struct apply_options {
    app_common_t common;
    const char *output;
    int side, trans, backend;
    int64_t threads;
    bool full, overwrite, narrow;
} apply_options_t;

#define AT(field) offsetof(apply_options_t, field)
static const cli_option_t options_table[] = {
    {"files", "output", 'o', CLI_TEXT, AT(output), "FILE", NULL, NULL,
     "output file (required): a dataset for each of the factored ones, by its name", 0, 0},
    {"files", "overwrite", 0, CLI_FLAG, AT(overwrite), NULL, NULL, NULL,
     "replace an existing output, or one left by an unfinished run", 0, 0},
    {"files", "narrow", 0, CLI_FLAG, AT(narrow), NULL, NULL, NULL,
     "allow long double and int64 of B beyond 2^53 to be rounded to float64", 0, 0},
    {"arithmetic", "side", 0, CLI_CHOICE, AT(side), "SIDE", "left", "left|right",
     "op(Q) B, or B op(Q)", 0, 0},
    {"arithmetic", "trans", 0, CLI_CHOICE, AT(trans), "OP", "N", "N|C",
     "N: op(Q) = Q, which is m x m; C: Q^H", 0, 0},
    {"arithmetic", "full", 0, CLI_FLAG, AT(full), NULL, NULL, NULL,
     "without B.h5: all m columns of Q, not the first min(m, n)", 0, 0},
    {"arithmetic", "backend", 0, CLI_CHOICE, AT(backend), "NAME", "auto", BATCHES_BACKENDS,
     "who computes", 0, 0},
    {"running", "threads", 0, CLI_INT, AT(threads), "N", "0", "auto",
     "threads that compute; 0 or auto: as many as the cores it may use", 0, 1024},
    APP_COMMON_OPTIONS(apply_options_t)};

static int run_apply(const cli_command_t *command, void *options, char **args, int nargs);

const cli_command_t cmd_apply = {.name = "apply",
                                 .summary = "multiply matrices by the Q of an output, or write Q",
                                 .usage = "QR.h5 [B.h5] -o OUT.h5",
                                 .min_args = 1,
                                 .max_args = 2,
                                 .options = options_table,
                                 .options_size = sizeof(apply_options_t),
                                 .examples = "  fugu apply qr.h5 -o q.h5\n"
                                             "  fugu apply qr.h5 b.h5 -o qtb.h5 --trans C\n",
                                 .run = run_apply};

typedef struct apply_run {
    const apply_options_t *options;
    const char *input, *b_path; /* b_path NULL: Q itself */
    gb10_handle_t *handle;
    io_result_t result;
    io_catalog_t factored, b, out; /* factored: the output of fugu qr as a file, for its identity */
    io_reader_t *reader;
    io_output_t *output;
    int64_t nonfinite;
} apply_run_t;

/* B of a group; *once: one matrix stands for all. */
static gb10_status_t find_b(const apply_run_t *run, const io_group_t *g, int64_t *at, bool *once,
                            gb10_error_t *err)
{
    *at = batches_find(&run->b, g->name);
    if (*at < 0 && run->b.ndatasets == 1 && run->b.datasets[0].count == 1)
        *at = 0;
    if (*at < 0)
        return GB10_FAIL(err, GB10_ERR_FORMAT,
                         "%s: it has no matrices named %s, as %s has. Name its datasets as those "
                         "that were factored, or give one matrix for all.",
                         run->b_path, g->name, run->input);
    const io_dataset_t *b = &run->b.datasets[*at];
    const int64_t meets = run->options->side == LEFT ? b->m : b->n;
    *once = b->count == 1 && g->count != 1;
    if (meets == g->m && b->dtype == g->dtype && (*once || b->count == g->count))
        return GB10_OK;
    return GB10_FAIL(err, GB10_ERR_FORMAT,
                     "%s: %s holds %lld matrices of %s (%c), but %s of %s has %lld of %s (%c), "
                     "whose Q is %s. Give B as many matrices (or one), of the same type, with "
                     "%lld %s.",
                     run->b_path, b->name, (long long)b->count, format_shape(b->m, b->n),
                     gb10_dtype_letter(b->dtype), g->name, run->input, (long long)g->count,
                     format_shape(g->m, g->n), gb10_dtype_letter(g->dtype),
                     format_shape(g->m, g->m), (long long)g->m,
                     run->options->side == LEFT ? "rows" : "columns");
}

static gb10_status_t add_batch(apply_run_t *run, const io_group_t *g, gb10_error_t *err)
{
    const bool v = g->kinds >> IO_V & 1u, t = g->kinds >> IO_T & 1u;
    if (!t || !(v || g->kinds >> IO_PACKED & 1u))
        return GB10_FAIL(err, GB10_ERR_FORMAT,
                         "%s: %s has not both V (or packed) and T. Factor it with --outputs V,T.",
                         run->input, g->name);
    if (!run->b_path)
        return io_catalog_add(&run->out, g->name, g->dtype, g->m, run->options->full ? g->m : g->k,
                              g->count, err);
    int64_t at = -1;
    bool once = false;
    gb10_status_t status = find_b(run, g, &at, &once, err);
    if (status != GB10_OK)
        return status;
    const io_dataset_t *b = &run->b.datasets[at];
    if (once || strcmp(b->name, g->name) != 0)
        return io_catalog_add(&run->out, g->name, g->dtype, b->m, b->n, g->count, err);
    return io_catalog_add_like(&run->out, b, b->m, b->n, err);
}

static gb10_status_t open_files(apply_run_t *run, gb10_error_t *err)
{
    const apply_options_t *o = run->options;
    gb10_status_t status = GB10_OK;
    GB10_TRY(io_result_open(&run->result, run->input, err));
    if (!run->result.complete)
        return GB10_FAIL(err, GB10_ERR_FORMAT,
                         "%s: it is not complete. Finish it with fugu qr --resume.", run->input);
    GB10_TRY(io_catalog_open(&run->factored, run->input, NULL, 0, IO_LENIENT, err));
    if (run->b_path) {
        GB10_TRY(io_catalog_open(&run->b, run->b_path, NULL, 0, o->narrow ? IO_NARROW : 0, err));
        GB10_TRY(io_reader_open(&run->reader, &run->b, err));
    }
    for (int64_t i = 0; i < run->result.ngroups; i++)
        GB10_TRY(add_batch(run, &run->result.groups[i], err));
    const io_catalog_t *const inputs[2] = {&run->factored, run->b_path ? &run->b : NULL};
    GB10_TRY(batches_create(&run->output, o->output, "fugu apply", &run->out, inputs, o->overwrite,
                            err));
cleanup:
    return status;
}

/* Memory of one batch's pieces. */
typedef struct piece {
    char *V, *T, *packed, *C;
} piece_t;

static gb10_status_t compute(apply_run_t *run, const io_group_t *g, const piece_t *p, int64_t rows,
                             int64_t cols, int64_t count, gb10_error_t *err)
{
    const int64_t nb = g->nb < g->k ? g->nb : g->k;
    const gb10_view_t V = gb10_view_rows(g->dtype, p->V, g->m, g->k, count);
    const gb10_view_t T = gb10_view_rows(g->dtype, p->T, nb, g->k, count);
    const gb10_view_t C = gb10_view_rows(g->dtype, p->C, rows, cols, count);
    const gb10_form_q_args_t form = {.V = &V, .T = &T, .Q = &C, .nb = g->nb};
    const gb10_apply_q_args_t apply = {.V = &V,
                                       .T = &T,
                                       .C = &C,
                                       .nb = g->nb,
                                       .side = run->options->side == LEFT ? 'L' : 'R',
                                       .trans = "NC"[run->options->trans]};
    const gb10_status_t status =
        run->b_path ? gb10_apply_q(run->handle, &apply) : gb10_form_q(run->handle, &form);
    if (status != GB10_OK)
        *err = *gb10_last_error(run->handle);
    const size_t bytes = (size_t)(rows * cols) * gb10_dtype_size(g->dtype);
    for (int64_t i = 0; i < count; i++)
        run->nonfinite += !batches_finite(g->dtype, p->C + (size_t)i * bytes, rows * cols);
    return status;
}

/* Matrices first .. of a group: V and T, and B in C's place. */
static gb10_status_t load(apply_run_t *run, int64_t group, int64_t from_b, bool once, int64_t first,
                          int64_t count, const piece_t *p, int64_t c_bytes, gb10_error_t *err)
{
    const io_group_t *g = &run->result.groups[group];
    gb10_status_t status = GB10_OK;
    if (g->kinds >> IO_V & 1u) {
        GB10_TRY(io_result_read(&run->result, IO_V, group, first, count, p->V, err));
    } else {
        GB10_TRY(io_result_read(&run->result, IO_PACKED, group, first, count, p->packed, err));
        factors_unpack(g->dtype, g->m, g->n, count, p->packed, p->V, NULL);
    }
    GB10_TRY(io_result_read(&run->result, IO_T, group, first, count, p->T, err));
    if (from_b >= 0)
        GB10_TRY(io_read(run->reader, from_b, once ? 0 : first, once ? 1 : count, p->C, err));
    for (int64_t i = 1; once && i < count; i++)
        memcpy(p->C + i * c_bytes, p->C, (size_t)c_bytes);
cleanup:
    return status;
}

static gb10_status_t do_group(apply_run_t *run, int64_t group, gb10_error_t *err)
{
    const io_group_t *g = &run->result.groups[group];
    const io_dataset_t *c = &run->out.datasets[group];
    const int64_t size = (int64_t)gb10_dtype_size(g->dtype), c_bytes = c->m * c->n * size;
    const int64_t v_bytes = factors_bytes(g->dtype, g->m, g->n, g->nb, FACTOR_V);
    const int64_t t_bytes = factors_bytes(g->dtype, g->m, g->n, g->nb, FACTOR_T);
    const int64_t a_bytes = g->kinds >> IO_V & 1u ? 0 : g->m * g->n * size;
    int64_t from_b = -1, quantum = 1;
    bool once = false;
    piece_t p = {0};
    gb10_status_t status = GB10_OK;
    if (c_bytes == 0)
        return GB10_OK;
    if (run->b_path)
        GB10_TRY(find_b(run, g, &from_b, &once, err));
    if (from_b >= 0 && !once)
        quantum = run->b.datasets[from_b].quantum;
    const int64_t piece = batches_piece(v_bytes + t_bytes + a_bytes + c_bytes, quantum, g->count);
    GB10_TRY(gb10_alloc(&p.V, (size_t)piece, (size_t)v_bytes + 1, g->name, err));
    GB10_TRY(gb10_alloc(&p.T, (size_t)piece, (size_t)t_bytes + 1, g->name, err));
    GB10_TRY(gb10_alloc(&p.packed, (size_t)piece, (size_t)a_bytes + 1, g->name, err));
    GB10_TRY(gb10_alloc(&p.C, (size_t)piece, (size_t)c_bytes, g->name, err));
    for (int64_t first = 0; first < g->count; first += piece) {
        const int64_t rest = g->count - first, count = rest < piece ? rest : piece;
        GB10_TRY(load(run, group, from_b, once, first, count, &p, c_bytes, err));
        GB10_TRY(compute(run, g, &p, c->m, c->n, count, err));
        GB10_TRY(io_write(run->output, IO_A, group, first, count, p.C, err));
    }
cleanup:
    gb10_free(p.V);
    gb10_free(p.T);
    gb10_free(p.packed);
    gb10_free(p.C);
    return status;
}

static gb10_status_t run_all(apply_run_t *run, gb10_error_t *err)
{
    const apply_options_t *o = run->options;
    gb10_status_t status = GB10_OK;
    if (!o->output || !*o->output)
        return GB10_FAIL(err, GB10_ERR_USAGE, "no output named; use -o OUT.h5");
    if (o->full && run->b_path)
        return GB10_FAIL(err, GB10_ERR_USAGE, "--full is for Q itself; leave out %s", run->b_path);
    if (!run->b_path && (o->side != LEFT || o->trans != 0))
        return GB10_FAIL(err, GB10_ERR_USAGE,
                         "--side and --trans say how B is multiplied; name its file");
    GB10_TRY(batches_handle(&run->handle, o->backend, o->threads, err));
    GB10_TRY(open_files(run, err));
    for (int64_t i = 0; i < run->result.ngroups; i++)
        GB10_TRY(do_group(run, i, err));
    if (run->reader)
        GB10_TRY(io_reader_unchanged(run->reader, err));
cleanup:
    return batches_close(run->output, status, err);
}

static int run_apply(const cli_command_t *command, void *options, char **args, int nargs)
{
    app_context_t app;
    gb10_error_t err = {0};
    apply_run_t run = {.options = options,
                       .input = args[0],
                       .b_path = nargs > 1 ? args[1] : NULL,
                       .result.fd = -1};
    const double start = app_now();
    app_context_init(&app, command->name, &run.options->common);
    if (app.team.rank != 0)
        return EXIT_DONE; /* one process writes the file */
    run_all(&run, &err);
    int code =
        batches_end(&app, run.options->output, &run.out, run.nonfinite, start, run.handle, &err);
    io_result_close(&run.result);
    io_reader_close(run.reader);
    io_catalog_free(&run.factored);
    io_catalog_free(&run.b);
    io_catalog_free(&run.out);
    gb10_destroy(run.handle);
    return code;
}
