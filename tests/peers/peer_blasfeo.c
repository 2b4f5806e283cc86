/* BLASFEO's geqrf for s and d: converted to its panel-major matrices and back, both in the time. */
#include <blasfeo_common.h>
#include <blasfeo_d_aux.h>
#include <blasfeo_d_aux_ext_dep.h>
#include <blasfeo_d_blasfeo_api.h>
#include <blasfeo_s_aux.h>
#include <blasfeo_s_aux_ext_dep.h>
#include <blasfeo_s_blasfeo_api.h>
#include <stdlib.h>
#include <string.h>

#include "tests/peers/peer.h"

static struct {
    struct blasfeo_smat s;
    struct blasfeo_dmat d;
    void *work;
    char type; /* of the matrix that is allocated, 0: none */
} own;

static const char *prepare(const peer_batch_t *b)
{
    if (own.type == 's')
        blasfeo_free_smat(&own.s);
    if (own.type == 'd')
        blasfeo_free_dmat(&own.d);
    own.type = 0;
    free(own.work);
    own.work = NULL;
    int bytes = 0;
    if (b->dtype == 's') {
        blasfeo_allocate_smat(b->m, b->n, &own.s);
        bytes = blasfeo_sgeqrf_worksize(b->m, b->n);
    } else if (b->dtype == 'd') {
        blasfeo_allocate_dmat(b->m, b->n, &own.d);
        bytes = blasfeo_dgeqrf_worksize(b->m, b->n);
    } else {
        return "complex type";
    }
    own.type = b->dtype;
    own.work = aligned_alloc(64, ((size_t)bytes + 127) / 64 * 64);
    return own.work ? NULL : "memory for the workspace";
}

static const char *geqrf(const peer_batch_t *b, long first, long count)
{
    size_t elements = (size_t)b->m * (size_t)b->n;
    for (long i = first; i < first + count; i++) {
        void *a = peer_at(b, b->A, i, elements), *f = peer_at(b, b->F, i, elements);
        void *tau = peer_at(b, b->tau, i, (size_t)b->k);
        if (b->dtype == 's') {
            blasfeo_pack_smat(b->m, b->n, a, b->m, &own.s, 0, 0);
            blasfeo_sgeqrf(b->m, b->n, &own.s, 0, 0, &own.s, 0, 0, own.work);
            blasfeo_unpack_smat(b->m, b->n, &own.s, 0, 0, f, b->m);
            memcpy(tau, own.s.dA, (size_t)b->k * b->size);
        } else {
            blasfeo_pack_dmat(b->m, b->n, a, b->m, &own.d, 0, 0);
            blasfeo_dgeqrf(b->m, b->n, &own.d, 0, 0, &own.d, 0, 0, own.work);
            blasfeo_unpack_dmat(b->m, b->n, &own.d, 0, 0, f, b->m);
            memcpy(tau, own.d.dA, (size_t)b->k * b->size);
        }
    }
    return NULL;
}

int main(void)
{
    static const peer_algorithm_t algorithms[] = {{"geqrf", "sd", "T", geqrf}};
    peer_program_t program = {.name = "blasfeo",
                              .version = PEER_VERSION,
                              .algorithms = algorithms,
                              .nalgorithms = 1,
                              .prepare = prepare};
    return peer_serve(&program);
}
