/* fugu csyrk: rank-k updates of every matrix of a file, streamed in pieces through one process. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "app/batches.h"
#include "app/commands.h"
#include "app/context.h"
#include "app/format.h"
#include "io/io.h"
#include "kernels/core/alloc.h"
#include "kernels/core/view.h"

enum { UPPER, LOWER };

typedef struct csyrk_options {
    app_common_t common;
    cli_list_t datasets;
    const char *output, *c, *alpha, *beta;
    int uplo, trans, backend;
    int64_t threads;
    bool hermitian, mirror, overwrite, narrow;
} csyrk_options_t;

#define CSYRK_UPLO  "upper|lower"
#define CSYRK_TRANS "N|T|C"

#define AT(field) offsetof(csyrk_options_t, field)
static const cli_option_t options_table[] = {
    {"files", "output", 'o', CLI_TEXT, AT(output), "FILE", NULL, NULL,
     "output file (required): a dataset of n x n matrices for each of the input, by its name", 0,
     0},
    {"files", "c", 0, CLI_TEXT, AT(c), "FILE", NULL, NULL,
     "file with C: datasets of n x n matrices by the names of the input's; without it C is 0", 0,
     0},
    {"files", "dataset", 'd', CLI_LIST, AT(datasets), "PATTERN", NULL, NULL,
     "only batches whose path matches this shell pattern; may be repeated", 0, 0},
    {"files", "overwrite", 0, CLI_FLAG, AT(overwrite), NULL, NULL, NULL,
     "replace an existing output, or one left by an unfinished run", 0, 0},
    {"files", "narrow", 0, CLI_FLAG, AT(narrow), NULL, NULL, NULL,
     "allow long double and int64 beyond 2^53 to be rounded to float64", 0, 0},
    {"arithmetic", "alpha", 0, CLI_TEXT, AT(alpha), "NUMBER", "1,0", NULL,
     "factor of op(A) op(A)^T: RE or RE,IM", 0, 0},
    {"arithmetic", "beta", 0, CLI_TEXT, AT(beta), "NUMBER", "0,0", NULL,
     "factor of C: RE or RE,IM; 0: C is not multiplied", 0, 0},
    {"arithmetic", "uplo", 0, CLI_CHOICE, AT(uplo), "PART", "lower", CSYRK_UPLO,
     "the triangle that is computed; the other one is C's, or 0", 0, 0},
    {"arithmetic", "trans", 0, CLI_CHOICE, AT(trans), "OP", "N", CSYRK_TRANS,
     "N: op(A) = A; T: A^T; C: as T, or A^H with --hermitian", 0, 0},
    {"arithmetic", "hermitian", 0, CLI_FLAG, AT(hermitian), NULL, NULL, NULL,
     "op(A) op(A)^H, with alpha and beta real", 0, 0},
    {"arithmetic", "mirror", 0, CLI_FLAG, AT(mirror), NULL, NULL, NULL,
     "fill the other triangle too, so that the result is whole", 0, 0},
    {"arithmetic", "backend", 0, CLI_CHOICE, AT(backend), "NAME", "auto", BATCHES_BACKENDS,
     "who computes", 0, 0},
    {"running", "threads", 0, CLI_INT, AT(threads), "N", "0", "auto",
     "threads that compute; 0 or auto: as many as the cores it may use", 0, 1024},
    APP_COMMON_OPTIONS(csyrk_options_t)};

static int run_csyrk(const cli_command_t *command, void *options, char **args, int nargs);

const cli_command_t cmd_csyrk = {
    .name = "csyrk",
    .summary = "C = alpha op(A) op(A)^T + beta C for every matrix A",
    .usage = "IN.h5 -o OUT.h5",
    .min_args = 1,
    .max_args = 1,
    .options = options_table,
    .options_size = sizeof(csyrk_options_t),
    .examples = "  fugu csyrk channels.h5 -o gram.h5 --hermitian --mirror\n"
                "  fugu csyrk a.h5 -o new.h5 --c old.h5 --alpha 0.1,0 --beta 0.9,0\n",
    .run = run_csyrk};

typedef struct csyrk_run {
    const csyrk_options_t *options;
    const char *input;
    double alpha[2], beta[2];
    char trans;
    gb10_handle_t *handle;
    io_catalog_t in, c, out; /* c: only with --c and beta not 0, or for its other triangle */
    io_reader_t *reader, *c_reader;
    io_output_t *output;
    int64_t nonfinite;
} csyrk_run_t;

/* "RE" or "RE,IM". */
static gb10_status_t parse_scalar(const char *option, const char *text, double value[2],
                                  gb10_error_t *err)
{
    char *end = NULL;
    value[0] = strtod(text, &end);
    value[1] = 0;
    bool good = end != text;
    if (good && *end == ',') {
        const char *second = end + 1;
        value[1] = strtod(second, &end);
        good = end != second;
    }
    if (good && *end == 0)
        return GB10_OK;
    return GB10_FAIL(err, GB10_ERR_USAGE, "--%s %s: it reads RE or RE,IM, as 0.5 or 1,-2", option,
                     text);
}

/* Rows of op(A), and columns. */
static int64_t order_of(const csyrk_run_t *run, const io_dataset_t *a)
{
    return run->trans == 'N' ? a->m : a->n;
}

/* C of the batch `a`, in its file. */
static gb10_status_t find_c(const csyrk_run_t *run, const io_dataset_t *a, int64_t *at,
                            gb10_error_t *err)
{
    const int64_t n = order_of(run, a);
    *at = batches_find(&run->c, a->name);
    if (*at < 0)
        return GB10_FAIL(err, GB10_ERR_FORMAT,
                         "%s: it has no matrices named %s, as %s has. Name its datasets as the "
                         "input's, or choose with --dataset.",
                         run->options->c, a->name, run->input);
    const io_dataset_t *c = &run->c.datasets[*at];
    if (c->m == n && c->n == n && c->count == a->count && c->dtype == a->dtype)
        return GB10_OK;
    return GB10_FAIL(err, GB10_ERR_FORMAT,
                     "%s: %s holds %lld matrices of %s (%c), but %s of %s needs %lld of %s "
                     "(%c). Give C by the shape of the result and the type of A.",
                     run->options->c, c->name, (long long)c->count, format_shape(c->m, c->n),
                     gb10_dtype_letter(c->dtype), a->name, run->input, (long long)a->count,
                     format_shape(n, n), gb10_dtype_letter(a->dtype));
}

static gb10_status_t check_batch(const csyrk_run_t *run, const io_dataset_t *a, gb10_error_t *err)
{
    const bool imaginary = run->alpha[1] != 0 || run->beta[1] != 0;
    int64_t at;
    if (imaginary && (run->options->hermitian || !gb10_dtype_is_complex(a->dtype)))
        return GB10_FAIL(err, GB10_ERR_USAGE,
                         "%s: %s: %s wants real --alpha and --beta. Leave their imaginary part "
                         "out.",
                         run->input, a->name,
                         run->options->hermitian ? "--hermitian" : "a real matrix");
    return run->options->c ? find_c(run, a, &at, err) : GB10_OK;
}

static gb10_status_t open_files(csyrk_run_t *run, gb10_error_t *err)
{
    const csyrk_options_t *o = run->options;
    const unsigned flags = o->narrow ? IO_NARROW : 0;
    gb10_status_t status = GB10_OK;
    GB10_TRY(io_catalog_open(&run->in, run->input, o->datasets.item, o->datasets.n, flags, err));
    GB10_TRY(io_reader_open(&run->reader, &run->in, err));
    if (o->c) {
        GB10_TRY(io_catalog_open(&run->c, o->c, NULL, 0, flags | IO_LENIENT, err));
        GB10_TRY(io_reader_open(&run->c_reader, &run->c, err));
    }
    for (int64_t d = 0; d < run->in.ndatasets; d++) {
        const io_dataset_t *a = &run->in.datasets[d];
        const int64_t n = order_of(run, a);
        GB10_TRY(check_batch(run, a, err));
        GB10_TRY(io_catalog_add_like(&run->out, a, n, n, err));
    }
    const io_catalog_t *const inputs[2] = {&run->in, o->c ? &run->c : NULL};
    GB10_TRY(batches_create(&run->output, o->output, "fugu csyrk", &run->out, inputs, o->overwrite,
                            err));
cleanup:
    return status;
}

/* The triangle that was computed, into the other one. */
static void mirror(const csyrk_run_t *run, const gb10_view_t *C, int64_t b)
{
    const int64_t n = C->n;
    const size_t size = gb10_dtype_size(C->dtype);
    char *c = gb10_view_at(C, b);
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < i; j++) {
            char *low = c + (size_t)(i * n + j) * size, *high = c + (size_t)(j * n + i) * size;
            char *to = run->options->uplo == UPPER ? low : high;
            memcpy(to, to == low ? high : low, size);
            if (run->options->hermitian && C->dtype == GB10_C)
                ((float *)(void *)to)[1] = -((float *)(void *)to)[1];
            if (run->options->hermitian && C->dtype == GB10_Z)
                ((double *)(void *)to)[1] = -((double *)(void *)to)[1];
        }
}

/* Whether the triangle holds neither NaN nor Inf. */
static bool is_finite(const csyrk_run_t *run, const gb10_view_t *C, int64_t b)
{
    const size_t size = gb10_dtype_size(C->dtype);
    const char *c = gb10_view_at(C, b);
    bool finite = true;
    for (int64_t i = 0; i < C->n; i++) {
        const int64_t from = run->options->uplo == UPPER ? i : 0;
        const int64_t to = run->options->uplo == UPPER ? C->n : i + 1;
        finite =
            finite && batches_finite(C->dtype, c + (size_t)(i * C->n + from) * size, to - from);
    }
    return finite;
}

/* Matrices first .. of a batch, whose A is in memory and whose C is there or zeros. */
static gb10_status_t update(csyrk_run_t *run, const gb10_view_t *A, const gb10_view_t *C,
                            gb10_error_t *err)
{
    const gb10_syrk_args_t args = {.A = A,
                                   .C = C,
                                   .alpha = {run->alpha[0], run->alpha[1]},
                                   .beta = {run->beta[0], run->beta[1]},
                                   .uplo = run->options->uplo == UPPER ? 'U' : 'L',
                                   .trans = run->trans,
                                   .hermitian =
                                       run->options->hermitian && gb10_dtype_is_complex(A->dtype)};
    const gb10_status_t status = gb10_syrk(run->handle, &args);
    if (status != GB10_OK) {
        *err = *gb10_last_error(run->handle);
        return status;
    }
    for (int64_t b = 0; b < C->count; b++) {
        run->nonfinite += !is_finite(run, C, b);
        if (run->options->mirror)
            mirror(run, C, b);
    }
    return GB10_OK;
}

static gb10_status_t do_batch(csyrk_run_t *run, int64_t dataset, gb10_error_t *err)
{
    const io_dataset_t *a = &run->in.datasets[dataset];
    const int64_t n = order_of(run, a), size = (int64_t)gb10_dtype_size(a->dtype);
    const int64_t a_bytes = a->m * a->n * size, c_bytes = n * n * size;
    const int64_t piece = batches_piece(a_bytes + c_bytes, a->quantum, a->count);
    int64_t from_c = -1;
    char *A = NULL, *C = NULL;
    gb10_status_t status = GB10_OK;
    if (c_bytes == 0)
        return GB10_OK;
    if (run->options->c)
        GB10_TRY(find_c(run, a, &from_c, err));
    GB10_TRY(gb10_alloc(&A, (size_t)piece, (size_t)(a_bytes > 0 ? a_bytes : 1), a->name, err));
    GB10_TRY(gb10_alloc(&C, (size_t)piece, (size_t)c_bytes, a->name, err));
    for (int64_t first = 0; first < a->count; first += piece) {
        const int64_t rest = a->count - first, count = rest < piece ? rest : piece;
        const gb10_view_t va = gb10_view_rows(a->dtype, A, a->m, a->n, count);
        const gb10_view_t vc = gb10_view_rows(a->dtype, C, n, n, count);
        if (a_bytes > 0)
            GB10_TRY(io_read(run->reader, dataset, first, count, A, err));
        if (from_c >= 0)
            GB10_TRY(io_read(run->c_reader, from_c, first, count, C, err));
        else
            memset(C, 0, (size_t)(count * c_bytes));
        GB10_TRY(update(run, &va, &vc, err));
        GB10_TRY(io_write(run->output, IO_A, dataset, first, count, C, err));
    }
cleanup:
    gb10_free(A);
    gb10_free(C);
    return status;
}

static gb10_status_t run_all(csyrk_run_t *run, gb10_error_t *err)
{
    gb10_status_t status = GB10_OK;
    GB10_TRY(batches_handle(&run->handle, run->options->backend, run->options->threads, err));
    GB10_TRY(open_files(run, err));
    for (int64_t d = 0; d < run->in.ndatasets; d++)
        GB10_TRY(do_batch(run, d, err));
    GB10_TRY(io_reader_unchanged(run->reader, err));
    if (run->c_reader)
        GB10_TRY(io_reader_unchanged(run->c_reader, err));
cleanup:
    return batches_close(run->output, status, err);
}

static gb10_status_t check_options(csyrk_run_t *run, gb10_error_t *err)
{
    const csyrk_options_t *o = run->options;
    run->trans = "NTC"[o->trans];
    if (!o->output || !*o->output)
        return GB10_FAIL(err, GB10_ERR_USAGE, "no output named; use -o OUT.h5");
    if (o->hermitian && run->trans == 'T')
        return GB10_FAIL(err, GB10_ERR_USAGE,
                         "--hermitian goes with --trans N or C: op(A) is A or A^H");
    gb10_status_t status = parse_scalar("alpha", o->alpha, run->alpha, err);
    if (status == GB10_OK)
        status = parse_scalar("beta", o->beta, run->beta, err);
    if (status == GB10_OK && !o->c && (run->beta[0] != 0 || run->beta[1] != 0))
        return GB10_FAIL(err, GB10_ERR_USAGE,
                         "--beta %s multiplies C, and there is none; name its file with --c",
                         o->beta);
    return status;
}

static int run_csyrk(const cli_command_t *command, void *options, char **args, int nargs)
{
    app_context_t app;
    gb10_error_t err = {0};
    csyrk_run_t run = {.options = options, .input = args[0]};
    const double start = app_now();
    (void)nargs;
    app_context_init(&app, command->name, &run.options->common);
    if (app.team.rank != 0)
        return EXIT_DONE; /* one process writes the file */
    if (check_options(&run, &err) == GB10_OK)
        run_all(&run, &err);
    int code =
        batches_end(&app, run.options->output, &run.out, run.nonfinite, start, run.handle, &err);
    io_reader_close(run.reader);
    io_reader_close(run.c_reader);
    io_catalog_free(&run.in);
    io_catalog_free(&run.c);
    io_catalog_free(&run.out);
    gb10_destroy(run.handle);
    return code;
}
