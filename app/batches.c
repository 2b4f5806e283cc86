#include "app/batches.h"

#include <string.h>

#include "app/cli.h"
#include "app/format.h"
#include "kernels/core/view.h"

gb10_status_t batches_handle(gb10_handle_t **handle, int choice, int64_t threads, gb10_error_t *err)
{
    char name[32];
    gb10_status_t status = gb10_create(handle, cli_choice(BATCHES_BACKENDS, choice, name), err);
    if (status == GB10_OK && gb10_set_threads(*handle, (int)threads) != GB10_OK) {
        *err = *gb10_last_error(*handle);
        status = err->status;
    }
    return status;
}

int64_t batches_find(const io_catalog_t *catalog, const char *name)
{
    for (int64_t d = 0; d < catalog->ndatasets; d++)
        if (strcmp(catalog->datasets[d].name, name) == 0)
            return d;
    return -1;
}

int64_t batches_piece(int64_t bytes, int64_t quantum, int64_t count)
{
    enum { PIECE = 32 << 20 };
    int64_t piece = PIECE / (bytes > 0 ? bytes : 1);
    piece = ((piece > 0 ? piece : 1) + quantum - 1) / quantum * quantum;
    return piece < count ? piece : count;
}

bool batches_finite(gb10_dtype_t dtype, const void *p, int64_t elements)
{
    const int64_t numbers = elements * (gb10_dtype_is_complex(dtype) ? 2 : 1);
    double sum = 0;
    for (int64_t e = 0; e < numbers; e++)
        sum += 0 * gb10_number_at(dtype, p, e);
    return sum == 0;
}

gb10_status_t batches_create(io_output_t **output, const char *path, const char *creator,
                             const io_catalog_t *catalog, const io_catalog_t *const inputs[2],
                             bool overwrite, gb10_error_t *err)
{
    io_attribute_t attributes[] = {{"creator", creator, 0}, {"creator_version", FUGU_VERSION, 0}};
    const io_spec_t spec = {.kinds = 1u << IO_A,
                            .nb = 1,
                            .attributes = attributes,
                            .nattributes = 2,
                            .overwrite = overwrite};
    const int64_t bytes = io_output_bytes(catalog, &spec);
    gb10_status_t status = GB10_OK;
    for (int i = 0; i < 2 && status == GB10_OK; i++)
        if (inputs[i])
            status =
                io_output_check(path, inputs[i], overwrite ? IO_REPLACE : IO_REFUSE, bytes, err);
    return status == GB10_OK ? io_output_create(output, path, catalog, &spec, err) : status;
}

gb10_status_t batches_close(io_output_t *output, gb10_status_t status, gb10_error_t *err)
{
    if (status == GB10_OK)
        status = io_output_sync(output, err);
    if (status == GB10_OK)
        status = io_output_finish(output, err);
    if (status != GB10_OK)
        io_output_discard(output);
    io_output_close(output);
    return status;
}

int batches_end(const app_context_t *app, const char *output, const io_catalog_t *catalog,
                int64_t nonfinite, double start, const gb10_handle_t *handle,
                const gb10_error_t *err)
{
    int64_t matrices = 0;
    if (err->status != GB10_OK)
        return app_fail(app, err);
    for (int64_t d = 0; d < catalog->ndatasets; d++)
        matrices += catalog->datasets[d].count;
    if (app->level >= APP_INFO)
        printf("wrote %s: %s, %s, %s with NaN or Inf, %s (backend %s)\n", output,
               format_things(catalog->ndatasets, "dataset"), format_things(matrices, "matri"),
               format_count(nonfinite), format_seconds(app_now() - start),
               gb10_backend_name(handle));
    return nonfinite > 0 ? EXIT_BAD_MATRIX : EXIT_DONE;
}
