#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "app/commands.h"
#include "app/context.h"
#include "app/format.h"
#include "io/io.h"
#include "kernels/core/alloc.h"
#include "kernels/core/family.h"

typedef struct gen_options {
    app_common_t common;
    cli_list_t add;
    int64_t seed;
    bool overwrite, list;
} gen_options_t;

#define AT(field) offsetof(gen_options_t, field)
static const cli_option_t options_table[] = {
    {"matrices", "add", 'a', CLI_LIST, AT(add), "SPEC", NULL, NULL,
     "FAMILY:MxNxB:DTYPE[:cond=X][:name=PATH], B matrices of M x N; DTYPE s, d, c or z; may be "
     "repeated",
     0, 0},
    {"matrices", "seed", 0, CLI_INT, AT(seed), "N", "1", NULL,
     "the same seed gives the same bytes on every machine", 0, 9e15},
    {"matrices", "list", 0, CLI_FLAG, AT(list), NULL, NULL, NULL, "name the families and stop", 0,
     0},
    {"files", "overwrite", 0, CLI_FLAG, AT(overwrite), NULL, NULL, NULL, "replace an existing file",
     0, 0},
    APP_COMMON_OPTIONS(gen_options_t)};

static int run_gen(const cli_command_t *command, void *options, char **args, int nargs);

const cli_command_t cmd_gen = {
    .name = "gen",
    .summary = "make a file of test matrices",
    .usage = "OUT.h5 --add SPEC [--add SPEC ...]",
    .min_args = 0,
    .max_args = 1,
    .options = options_table,
    .options_size = sizeof(gen_options_t),
    .examples = "  fugu gen in.h5 --add gaussian:64x64x1000:d\n"
                "  fugu gen in.h5 --add kahan:30x20x5:z --add nan:8x8x1:s:name=bad/A\n",
    .run = run_gen};

enum { NAME_MAX_LENGTH = 240 };

/* One --add, parsed. */
typedef struct batch_spec {
    const gb10_family_t *family;
    gb10_dtype_t dtype;
    int64_t m, n, count;
    double cond; /* 0: the family's default */
    char name[NAME_MAX_LENGTH];
} batch_spec_t;

static gb10_status_t bad_spec(const char *text, const char *why, gb10_error_t *err)
{
    return GB10_FAIL(err, GB10_ERR_USAGE,
                     "--add %s: %s; it reads FAMILY:MxNxB:DTYPE[:cond=X][:name=PATH]", text, why);
}

static gb10_status_t parse_shape(const char *text, const char *word, batch_spec_t *spec,
                                 gb10_error_t *err)
{
    int64_t *const to[3] = {&spec->m, &spec->n, &spec->count};
    for (int i = 0; i < 3; i++) {
        char *end;
        long long value = strtoll(word, &end, 10);
        if (end == word || value < 0 || value > 1000000000000 || *end != (i < 2 ? 'x' : 0))
            return bad_spec(text, "the shape is not MxNxB", err);
        *to[i] = value;
        word = end + 1;
    }
    return GB10_OK;
}

static gb10_status_t parse_setting(const char *text, const char *word, batch_spec_t *spec,
                                   gb10_error_t *err)
{
    char *end;
    if (strncmp(word, "cond=", 5) == 0) {
        spec->cond = strtod(word + 5, &end);
        if (end == word + 5 || *end || !(spec->cond >= 1 && isfinite(spec->cond)))
            return bad_spec(text, "cond is not a number >= 1", err);
        return GB10_OK;
    }
    if (strncmp(word, "name=", 5) == 0 && strlen(word) > 5) {
        int length =
            snprintf(spec->name, sizeof spec->name, "%s%s", word[5] == '/' ? "" : "/", word + 5);
        return length < NAME_MAX_LENGTH - 8 ? GB10_OK : bad_spec(text, "the name is too long", err);
    }
    return bad_spec(text, "unknown setting", err);
}

static gb10_status_t parse_spec(const char *text, batch_spec_t *spec, gb10_error_t *err)
{
    char copy[512], *save = NULL;
    gb10_status_t status = GB10_OK;
    *spec = (batch_spec_t){.cond = 0};
    if (strlen(text) >= sizeof copy)
        return bad_spec(text, "it is too long", err);
    memcpy(copy, text, strlen(text) + 1);
    char *family = strtok_r(copy, ":", &save), *shape = strtok_r(NULL, ":", &save);
    char *dtype = strtok_r(NULL, ":", &save), *setting;
    const char *letter = dtype && dtype[0] && !dtype[1] ? strchr("sdcz", dtype[0]) : NULL;
    if (!family || !shape || !letter)
        return bad_spec(text, "a part is missing or the type is none of s, d, c, z", err);
    spec->family = gb10_family_find(family);
    if (!spec->family)
        return bad_spec(text, "unknown family (fugu gen --list names them)", err);
    spec->dtype = (gb10_dtype_t)(letter - "sdcz");
    status = parse_shape(text, shape, spec, err);
    snprintf(spec->name, sizeof spec->name, "/%s_%lldx%lld_%s", family, (long long)spec->m,
             (long long)spec->n, dtype);
    while (status == GB10_OK && (setting = strtok_r(NULL, ":", &save)))
        status = parse_setting(text, setting, spec, err);
    return status;
}

/* A second batch of the same name gets a number. */
static void make_unique(batch_spec_t *specs, int at)
{
    size_t length = strlen(specs[at].name);
    for (int i = 0, number = 2; i < at; i++)
        if (strcmp(specs[i].name, specs[at].name) == 0) {
            snprintf(specs[at].name + length, sizeof specs[at].name - length, "_%d", number++);
            i = -1;
        }
}

static gb10_status_t fill(io_output_t *output, const batch_spec_t *spec, int64_t dataset,
                          uint64_t seed, gb10_error_t *err)
{
    enum { PIECE = 16 << 20 };
    int64_t one = spec->m * spec->n * (int64_t)gb10_dtype_size(spec->dtype);
    int64_t batch = one > 0 && one < PIECE ? PIECE / one : 1;
    gb10_family_args_t args = {
        .dtype = spec->dtype, .m = spec->m, .n = spec->n, .seed = seed, .cond = spec->cond};
    char *buffer = NULL;
    gb10_status_t status = GB10_OK;
    if (one == 0)
        return GB10_OK;
    batch = batch < spec->count ? batch : spec->count;
    GB10_TRY(gb10_alloc(&buffer, (size_t)batch, (size_t)one, spec->name, err));
    for (int64_t first = 0; first < spec->count; first += batch) {
        int64_t count = spec->count - first < batch ? spec->count - first : batch;
        for (int64_t i = 0; i < count; i++) {
            args.index = first + i;
            GB10_TRY(gb10_family_fill(spec->family, &args, buffer + i * one, err));
        }
        GB10_TRY(io_write(output, IO_A, dataset, first, count, buffer, err));
    }
cleanup:
    gb10_free(buffer);
    return status;
}

/* The catalog is in name order; this finds the spec of an entry again. */
static const batch_spec_t *spec_of(const batch_spec_t *specs, int n, const char *name)
{
    for (int i = 0; i < n; i++)
        if (strcmp(specs[i].name, name) == 0)
            return &specs[i];
    return NULL;
}

static gb10_status_t make_file(const app_context_t *app, const gen_options_t *o, const char *path,
                               gb10_error_t *err)
{
    batch_spec_t *specs = NULL;
    io_catalog_t catalog = {0};
    io_output_t *output = NULL;
    char seed[32];
    snprintf(seed, sizeof seed, "%lld", (long long)o->seed);
    io_attribute_t attributes[] = {
        {"creator", "fugu gen", 0}, {"creator_version", FUGU_VERSION, 0}, {"seed", seed, 0}};
    io_spec_t spec = {.kinds = 1u << IO_A,
                      .nb = 1,
                      .attributes = attributes,
                      .nattributes = 3,
                      .overwrite = o->overwrite};
    int64_t matrices = 0;
    gb10_status_t status = GB10_OK;
    GB10_TRY(gb10_alloc(&specs, (size_t)o->add.n + 1, sizeof *specs, "specifications", err));
    for (int i = 0; i < o->add.n; i++) {
        GB10_TRY(parse_spec(o->add.item[i], &specs[i], err));
        make_unique(specs, i);
        GB10_TRY(io_catalog_add(&catalog, specs[i].name, specs[i].dtype, specs[i].m, specs[i].n,
                                specs[i].count, err));
        matrices += specs[i].count;
    }
    GB10_TRY(io_output_check(path, NULL, o->overwrite ? IO_REPLACE : IO_REFUSE,
                             io_output_bytes(&catalog, &spec), err));
    GB10_TRY(io_output_create(&output, path, &catalog, &spec, err));
    for (int64_t d = 0; d < catalog.ndatasets; d++)
        GB10_TRY(fill(output, spec_of(specs, o->add.n, catalog.datasets[d].name), d,
                      (uint64_t)o->seed, err));
    GB10_TRY(io_output_sync(output, err));
    GB10_TRY(io_output_finish(output, err));
    if (app->level >= APP_INFO)
        printf("wrote %s: %s, %s, %s\n", path, format_things(catalog.ndatasets, "dataset"),
               format_things(matrices, "matri"),
               format_bytes((double)io_output_bytes(&catalog, &spec)));
cleanup:
    if (status != GB10_OK)
        io_output_discard(output);
    io_output_close(output);
    io_catalog_free(&catalog);
    gb10_free(specs);
    return status;
}

static int run_gen(const cli_command_t *command, void *options, char **args, int nargs)
{
    const gen_options_t *o = options;
    app_context_t app;
    gb10_error_t err = {0};
    app_context_init(&app, command->name, &o->common);
    if (app.team.rank != 0)
        return EXIT_DONE; /* one process writes the file */
    if (o->list) {
        const gb10_family_t *family;
        for (int i = 0; (family = gb10_family_at(i)); i++)
            printf("  %-24s %s\n", gb10_family_name(family), gb10_family_about(family));
        return EXIT_DONE;
    }
    if (nargs < 1)
        GB10_FAIL(&err, GB10_ERR_USAGE, "no output file named; try fugu gen --help");
    else if (o->add.n == 0)
        GB10_FAIL(&err, GB10_ERR_USAGE, "no matrices asked for; use --add FAMILY:MxNxB:DTYPE");
    else
        make_file(&app, o, args[0], &err);
    return err.status == GB10_OK ? EXIT_DONE : app_fail(&app, &err);
}
