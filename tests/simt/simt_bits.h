/* Outputs against the bits on record in tests/simt/qr_bits.txt, which kernels have to give on the
 * CPU and on a GPU alike. A case is one line there, "NAME: HASH". After a change that is meant to
 * change bits, from the root:
 *     build/tests/simt/test_simt_qr | sed -n 's/^bits //p' > tests/simt/qr_bits.txt */
#ifndef TESTS_SIMT_SIMT_BITS_H
#define TESTS_SIMT_SIMT_BITS_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/core/view.h"
#include "tests/support/test.h"

#define BITS_FILE "tests/simt/qr_bits.txt"

/* FNV-1a, 64 bits. */
static const uint64_t bits_start = 0xcbf29ce484222325u;
static inline uint64_t bits_add(uint64_t hash, const void *data, size_t bytes)
{
    const unsigned char *p = data;
    for (size_t i = 0; i < bytes; i++)
        hash = (hash ^ p[i]) * 0x100000001b3u;
    return hash;
}

/* The matrices of a strided view, without what lies between them. NaN is NaN: its other bits
 * differ from machine to machine. */
static inline uint64_t bits_add_view(uint64_t hash, const gb10_view_t *v)
{
    const int parts = gb10_dtype_is_complex(v->dtype) ? 2 : 1;
    for (int64_t b = 0; b < v->count; b++)
        for (int64_t i = 0; i < v->m; i++)
            for (int64_t j = 0; j < v->n * parts; j++) {
                const int64_t at = b * v->bs + i * v->rs + j / parts * v->cs;
                const double x = gb10_number_at(v->dtype, v->base, at * parts + j % parts);
                const uint64_t nan = GB10_NAN64;
                hash = bits_add(hash, x != x ? (const void *)&nan : (const void *)&x, sizeof x);
            }
    return hash;
}

static inline void bits_check(const char *name, uint64_t hash)
{
    char line[256], found[256] = "", wanted[256];
    if (getenv("FUGU_TEST_SEED")) /* other matrices than those on record */
        return;
    snprintf(wanted, sizeof wanted, "%s: %016llx", name, (unsigned long long)hash);
    printf("bits %s\n", wanted);
    FILE *f = fopen(BITS_FILE, "r");
    const size_t part = strlen(name) + 1;
    while (f && fgets(line, sizeof line, f)) {
        line[strcspn(line, "\n")] = 0;
        if (strncmp(line, wanted, part) == 0)
            memcpy(found, line, sizeof found);
    }
    if (f)
        fclose(f);
    cr_expect(strcmp(found, wanted) == 0, "bits are %s, on record in " BITS_FILE ": %s", wanted,
              *found ? found : "none");
}

#endif
