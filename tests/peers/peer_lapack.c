/* LAPACK from a library that is named: OpenBLAS, also with the symbol prefix of its PyPI wheel, and
 * MKL with its compact batches.
 * Usage: peer_lapack LIBRARY NAME */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/peers/peer.h"

/* Fortran: everything by address; the lengths of CHARACTER arguments come last. */
typedef void geqrf_fn(const int *m, const int *n, void *a, const int *lda, void *tau, void *work,
                      const int *lwork, int *info);
typedef void larft_fn(const char *direct, const char *storev, const int *n, const int *k,
                      const void *v, const int *ldv, const void *tau, void *t, const int *ldt,
                      size_t direct_length, size_t storev_length);
typedef void geqrt_fn(const int *m, const int *n, const int *nb, void *a, const int *lda, void *t,
                      const int *ldt, void *work, int *info);
typedef void geqrt3_fn(const int *m, const int *n, void *a, const int *lda, void *t, const int *ldt,
                       int *info);

/* MKL's compact routines (C; MKL_INT is int): groups of matrices interleaved for vectors. */
typedef int format_fn(void);
typedef int compact_size_fn(int ld, int sd, int format, int nm);
typedef void pack_fn(int layout, int rows, int columns, const void *const *a, int lda, void *ap,
                     int ldap, int format, int nm);
typedef void unpack_fn(int layout, int rows, int columns, void *const *a, int lda, const void *ap,
                       int ldap, int format, int nm);
typedef void compact_geqrf_fn(int layout, int m, int n, void *ap, int ldap, void *taup, void *work,
                              int lwork, int *info, int format, int nm);
enum { MKL_COLUMNS = 102, CHUNK_BYTES = 128 << 10, CHUNK_MAX = 4096 };

typedef struct routines {
    geqrf_fn *geqrf;
    larft_fn *larft;
    geqrt_fn *geqrt;
    geqrt3_fn *geqrt3;
    compact_size_fn *compact_size;
    pack_fn *pack;
    unpack_fn *unpack;
    compact_geqrf_fn *compact_geqrf;
} routines_t;

/* Everything that outlives a request. */
static struct {
    void *library;
    format_fn *format;
    routines_t of[4]; /* s, d, c, z */
    void *work, *packed, *packed_tau;
    int lwork;         /* of geqrf, elements */
    int chunk;         /* matrices packed at a time */
    int compact_lwork; /* of the compact geqrf, elements */
} lib;

static const routines_t *routines(char dtype)
{
    return &lib.of[strchr("sdcz", dtype) - "sdcz"];
}

static void *symbol(const char *pattern, char letter)
{
    static const char *const prefixes[] = {"", "scipy_"};
    char base[64], name[96];
    void *found = NULL;
    snprintf(base, sizeof base, pattern, letter);
    for (size_t i = 0; i < sizeof prefixes / sizeof *prefixes && !found; i++) {
        snprintf(name, sizeof name, "%s%s", prefixes[i], base);
        found = dlsym(lib.library, name);
    }
    return found;
}

/* Elements that a workspace query has answered with, in an element of the type. */
static int answered(char dtype, const void *query)
{
    double number;
    float single;
    memcpy(&number, query, sizeof number);
    memcpy(&single, query, sizeof single);
    return (int)(dtype == 'd' || dtype == 'z' ? number : (double)single);
}

static void find_routines(void)
{
    lib.format = (format_fn *)dlsym(lib.library, "mkl_get_format_compact");
    for (int i = 0; i < 4; i++) {
        char c = "sdcz"[i];
        lib.of[i] = (routines_t){(geqrf_fn *)symbol("%cgeqrf_", c),
                                 (larft_fn *)symbol("%clarft_", c),
                                 (geqrt_fn *)symbol("%cgeqrt_", c),
                                 (geqrt3_fn *)symbol("%cgeqrt3_", c),
                                 (compact_size_fn *)symbol("mkl_%cget_size_compact", c),
                                 (pack_fn *)symbol("mkl_%cgepack_compact", c),
                                 (unpack_fn *)symbol("mkl_%cgeunpack_compact", c),
                                 (compact_geqrf_fn *)symbol("mkl_%cgeqrf_compact", c)};
    }
}

/* ---- LAPACK ---- */

/* The copy of a matrix that is factored in place. */
static void *fresh(const peer_batch_t *b, long i)
{
    size_t elements = (size_t)b->m * (size_t)b->n;
    return memcpy(peer_at(b, b->F, i, elements), peer_at(b, b->A, i, elements), elements * b->size);
}

static const char *geqrf(const peer_batch_t *b, long first, long count)
{
    const routines_t *r = routines(b->dtype);
    int info = 0;
    for (long i = first; i < first + count && info == 0; i++)
        r->geqrf(&b->m, &b->n, fresh(b, i), &b->m, peer_at(b, b->tau, i, (size_t)b->k), lib.work,
                 &lib.lwork, &info);
    return info ? "success of geqrf" : NULL;
}

static const char *geqrf_larft(const peer_batch_t *b, long first, long count)
{
    const routines_t *r = routines(b->dtype);
    int info = 0;
    for (long i = first; i < first + count && info == 0; i++) {
        char *a = fresh(b, i), *tau = peer_at(b, b->tau, i, (size_t)b->k);
        char *t = peer_at(b, b->T, i, (size_t)b->nb * (size_t)b->k);
        r->geqrf(&b->m, &b->n, a, &b->m, tau, lib.work, &lib.lwork, &info);
        for (int p = 0; p < b->k; p += b->nb) {
            int rows = b->m - p, columns = b->k - p < b->nb ? b->k - p : b->nb;
            size_t at = (size_t)p;
            r->larft("F", "C", &rows, &columns, a + (at * (size_t)b->m + at) * b->size, &b->m,
                     tau + at * b->size, t + at * (size_t)b->nb * b->size, &b->nb, 1, 1);
        }
    }
    return info ? "success of geqrf" : NULL;
}

static const char *geqrt(const peer_batch_t *b, long first, long count)
{
    const routines_t *r = routines(b->dtype);
    int info = 0;
    for (long i = first; i < first + count && info == 0; i++)
        r->geqrt(&b->m, &b->n, &b->nb, fresh(b, i), &b->m,
                 peer_at(b, b->T, i, (size_t)b->nb * (size_t)b->k), &b->nb, lib.work, &info);
    return info ? "success of geqrt" : NULL;
}

static const char *geqrt3(const peer_batch_t *b, long first, long count)
{
    const routines_t *r = routines(b->dtype);
    int info = 0;
    if (b->m < b->n)
        return "geqrt3 of m < n";
    for (long i = first; i < first + count && info == 0; i++)
        r->geqrt3(&b->m, &b->n, fresh(b, i), &b->m,
                  peer_at(b, b->T, i, (size_t)b->k * (size_t)b->k), &b->n, &info);
    return info ? "success of geqrt3" : NULL;
}

/* ---- MKL compact ---- */

static const char *compact_chunk(const peer_batch_t *b, long first, int count)
{
    const routines_t *r = routines(b->dtype);
    static const void *from[CHUNK_MAX];
    static void *to[CHUNK_MAX];
    int format = lib.format(), info = 0;
    size_t elements = (size_t)b->m * (size_t)b->n;
    for (int i = 0; i < count; i++) {
        from[i] = peer_at(b, b->A, first + i, elements);
        to[i] = peer_at(b, b->F, first + i, elements);
    }
    r->pack(MKL_COLUMNS, b->m, b->n, from, b->m, lib.packed, b->m, format, count);
    r->compact_geqrf(MKL_COLUMNS, b->m, b->n, lib.packed, b->m, lib.packed_tau, lib.work,
                     lib.compact_lwork, &info, format, count);
    r->unpack(MKL_COLUMNS, b->m, b->n, to, b->m, lib.packed, b->m, format, count);
    for (int i = 0; i < count; i++)
        to[i] = peer_at(b, b->tau, first + i, (size_t)b->k);
    r->unpack(MKL_COLUMNS, b->k, 1, to, b->k, lib.packed_tau, b->k, format, count);
    return info ? "success of geqrf_compact" : NULL;
}

static const char *compact(const peer_batch_t *b, long first, long count)
{
    for (long done = 0, part; done < count; done += part) {
        part = count - done < lib.chunk ? count - done : lib.chunk;
        const char *why = compact_chunk(b, first + done, (int)part);
        if (why)
            return why;
    }
    return NULL;
}

/* Workspace of the compact routines: chunks that stay in the second-level cache. */
static const char *prepare_compact(const peer_batch_t *b, size_t *work_bytes)
{
    const routines_t *r = routines(b->dtype);
    int format = lib.format(), info = 0, room = b->m * b->n < 1 << 30 ? 1 : 0;
    double query[2] = {0, 0};
    size_t bytes = (size_t)b->m * (size_t)b->n * b->size;
    lib.chunk =
        bytes > 0 && CHUNK_BYTES / bytes < CHUNK_MAX ? (int)(CHUNK_BYTES / bytes) : CHUNK_MAX;
    lib.chunk = lib.chunk < 16 ? 16 : lib.chunk; /* a full vector of the narrowest type */
    lib.chunk = lib.chunk > b->count ? (int)b->count : lib.chunk;
    int packed = r->compact_size(b->m, b->n, format, lib.chunk);
    int packed_tau = r->compact_size(b->k, 1, format, lib.chunk);
    free(lib.packed);
    free(lib.packed_tau);
    lib.packed = room && packed > 0 ? aligned_alloc(64, ((size_t)packed + 127) / 64 * 64) : NULL;
    lib.packed_tau = aligned_alloc(64, ((size_t)packed_tau + 127) / 64 * 64);
    if (!lib.packed || !lib.packed_tau)
        return "memory for the packed batch";
    r->compact_geqrf(MKL_COLUMNS, b->m, b->n, lib.packed, b->m, lib.packed_tau, query, -1, &info,
                     format, lib.chunk);
    lib.compact_lwork = answered(b->dtype, query);
    *work_bytes = (size_t)lib.compact_lwork * b->size;
    return NULL;
}

static const char *prepare(const peer_batch_t *b)
{
    const routines_t *r = routines(b->dtype);
    double query[2] = {0, 0};
    int info = 0, ask = -1;
    size_t compact_bytes = 0;
    r->geqrf(&b->m, &b->n, b->F, &b->m, b->tau, query, &ask, &info);
    lib.lwork = answered(b->dtype, query);
    if (lib.lwork < b->nb * b->n)
        lib.lwork = b->nb * b->n; /* geqrt's need */
    size_t bytes = (size_t)lib.lwork * b->size;
    if (lib.format && r->compact_geqrf) {
        const char *why = prepare_compact(b, &compact_bytes);
        if (why)
            return why;
    }
    bytes = bytes < compact_bytes ? compact_bytes : bytes;
    free(lib.work);
    lib.work = aligned_alloc(64, (bytes + 127) / 64 * 64);
    return lib.work ? NULL : "memory for the workspace";
}

/* ---- what there is ---- */

static void name_version(char *text, size_t size)
{
    typedef const char *config_fn(void);
    typedef void mkl_version_fn(char *text, int length);
    config_fn *config = (config_fn *)symbol("openblas_get_config", 0);
    config_fn *core = (config_fn *)symbol("openblas_get_corename", 0);
    mkl_version_fn *mkl = (mkl_version_fn *)dlsym(lib.library, "mkl_get_version_string");
    if (mkl) {
        char full[200] = "";
        mkl(full, sizeof full - 1);
        const char *version = strstr(full, "Version ");
        version = version ? version + strlen("Version ") : full;
        snprintf(text, size, "MKL %.*s", (int)strcspn(version, "- "), version);
    } else if (config) {
        const char *full = config(), *number = strchr(full, ' ');
        number = number ? number + 1 : full;
        snprintf(text, size, "OpenBLAS %.*s %s", (int)strcspn(number, " "), number,
                 core ? core() : "");
    } else {
        snprintf(text, size, "LAPACK of unknown version");
    }
}

int main(int argc, char **argv)
{
    static const peer_algorithm_t known[] = {
        {"geqrf", "sdcz", "T", geqrf},
        {"geqrf+larft", "sdcz", "nothing", geqrf_larft},
        {"geqrt", "sdcz", "tau apart from T", geqrt},
        {"geqrt3", "sdcz", "tau apart from T; T is n x n", geqrt3},
        {"compact", "sdcz", "T", compact}};
    peer_algorithm_t here[5];
    char version[96] = "", reason[256];
    peer_program_t program = {.name = argc > 2 ? argv[2] : "lapack",
                              .version = version,
                              .algorithms = here,
                              .prepare = prepare};
    dlopen("libm.so.6", RTLD_NOW | RTLD_GLOBAL); /* MKL's kernels use it and do not load it */
    lib.library = argc > 1 ? dlopen(argv[1], RTLD_NOW | RTLD_GLOBAL) : NULL;
    if (!lib.library) {
        snprintf(reason, sizeof reason, "%s", argc > 1 ? dlerror() : "no library named");
        program.reason = reason;
        return peer_serve(&program);
    }
    find_routines();
    name_version(version, sizeof version);
    const routines_t *r = &lib.of[1];
    const int there[5] = {
        r->geqrf != NULL, r->geqrf && r->larft, r->geqrt != NULL, r->geqrt3 != NULL,
        lib.format && r->compact_geqrf && r->pack && r->unpack && r->compact_size};
    for (int i = 0; i < 5; i++)
        if (there[i])
            here[program.nalgorithms++] = known[i];
    if (!there[0])
        program.reason = "the library has no dgeqrf_";
    return peer_serve(&program);
}
