/* The cpu backend's kernels: blocked compact-WY Householder QR on a column-major working copy, in
 * vector extensions. fast_isa.c is compiled once per instruction set; fast.c picks one at run time.
 * Private to kernels/cpu. */
#ifndef GB10_CPU_FAST_H
#define GB10_CPU_FAST_H

#include "kernels/gb10.h"

typedef struct gb10_fast {
    const char *name;
    /* Workspace in bytes for matrices of this shape, and the factorisation of a valid batch. */
    size_t (*need[GB10_DTYPES])(const gb10_geqrf_args_t *args);
    void (*geqrf[GB10_DTYPES])(const gb10_geqrf_args_t *args, void *workspace);
} gb10_fast_t;

/* Any layout into any other without scaling, by blocks that stay in the cache. */
void gb10_fast_repack(const gb10_repack_args_t *args);

extern const gb10_fast_t gb10_fast_baseline;
#if defined(__x86_64__)
extern const gb10_fast_t gb10_fast_avx2;
#endif

#endif
