/* dump_catalog [-n] [-l] [-q QUANTUM] IN.h5 DUMP [PATTERN...]: the catalog of a file as text on
 * stdout, and the converted matrices of all its datasets, one after the other, in the file DUMP.
 * -n: IO_NARROW, -l: IO_LENIENT; -q: read that many matrices at a time (default: all at once).
 * A failure is one line "error STATUS MESSAGE" and exit status 3. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "io/io.h"
#include "kernels/core/alloc.h"

static void print_dataset(const io_catalog_t *c, int64_t i)
{
    const io_dataset_t *d = &c->datasets[i];
    char text[IO_ELEMENT_TEXT];
    printf("dataset\t%s\t%c\t", d->name, gb10_dtype_letter(d->dtype));
    for (int j = 0; j < d->rank; j++)
        printf("%s%lld", j ? "," : "", (long long)d->dims[j]);
    printf("\t%s\t%s\t%lld\t%s\t", d->offset >= 0 ? "raw" : "hdf5",
           d->filtered ? "filtered" : "plain", (long long)d->quantum,
           io_element_text(&d->element, text));
    for (const char *p = d->aliases; p && *p; p++)
        putchar(*p == '\n' ? ' ' : *p);
    putchar('\n');
}

static gb10_status_t dump_data(const io_catalog_t *c, FILE *out, int64_t step, gb10_error_t *err)
{
    gb10_status_t status;
    io_reader_t *reader = NULL;
    char *buffer = NULL;
    GB10_TRY(io_reader_open(&reader, c, err));
    for (int64_t i = 0; i < c->ndatasets; i++) {
        const io_dataset_t *d = &c->datasets[i];
        int64_t some = step > 0 && step < d->count ? step : d->count;
        size_t matrix = (size_t)(d->m * d->n) * gb10_dtype_size(d->dtype);
        GB10_TRY(gb10_alloc(&buffer, (size_t)some, matrix, "matrices", err));
        for (int64_t first = 0; some > 0 && first < d->count; first += some) {
            int64_t count = d->count - first < some ? d->count - first : some;
            GB10_TRY(io_read(reader, i, first, count, buffer, err));
            fwrite(buffer, matrix, (size_t)count, out);
        }
        gb10_free(buffer);
        buffer = NULL;
    }
    GB10_TRY(io_reader_unchanged(reader, err));
cleanup:
    gb10_free(buffer);
    io_reader_close(reader);
    return status;
}

int main(int argc, char **argv)
{
    unsigned flags = 0;
    int64_t step = 0;
    for (int option; (option = getopt(argc, argv, "nlq:")) != -1;) {
        flags |= option == 'n' ? IO_NARROW : option == 'l' ? IO_LENIENT : 0;
        step = option == 'q' ? atoll(optarg) : step;
    }
    if (argc - optind < 2)
        return 2;
    gb10_error_t err = {0};
    io_catalog_t catalog = {0};
    char **rest = argv + optind;
    FILE *out = fopen(rest[1], "wb");
    if (!out)
        return 2;
    gb10_status_t status = io_catalog_open(&catalog, rest[0], (const char *const *)(rest + 2),
                                           argc - optind - 2, flags, &err);
    for (int64_t i = 0; status == GB10_OK && i < catalog.ndatasets; i++)
        print_dataset(&catalog, i);
    for (int64_t i = 0; status == GB10_OK && i < catalog.nnotes; i++)
        printf("%s\t%s\t%s\n", catalog.notes[i].warning ? "warning" : "note", catalog.notes[i].name,
               catalog.notes[i].reason);
    if (status == GB10_OK)
        status = dump_data(&catalog, out, step, &err);
    if (status != GB10_OK)
        printf("error %d %s\n", (int)status, err.message);
    fclose(out);
    io_catalog_free(&catalog);
    return status == GB10_OK ? 0 : 3;
}
