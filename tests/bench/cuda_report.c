/* What the plan chooses for each size on each chip, and what one matrix is modelled to take there.
 * Nothing here is measured: the chips' figures are their makers' or third parties' (the reference
 * notes name them), the steps' cycles are estimates. A table a chip:
 *   bytes   one matrix moved once: A read, V, R, T and tau written
 *   floor   time to move them at the chip's achievable bandwidth
 *   work    time of the multiplications at the full rate of the chip's lanes
 *   chain   time of the reflectors one after another, by the matrices in flight
 *   share   floor / the largest of the three: of what is possible with one pass over memory */
#include <stdio.h>
#include <string.h>

#include "kernels/cuda/qr_plan.h"

typedef struct chip {
    const char *name, *source;
    cuda_device_t device;
    double clock, bandwidth; /* Hz, bytes/s that copies reach */
    double fma[2];           /* lanes of a multiprocessor: single, double */
} chip_t;

static const chip_t chips[] = {
    {"GB10 (sm_121a)",
     "48 SM, 2.3 GHz under load, 240 GB/s achievable, fp64 at 1/64",
     {.arch = 121,
      .processors = 48,
      .threads_processor = 1536,
      .blocks_processor = 24,
      .max_cluster = 8,
      .direct = 1,
      .shared_block = 101376,
      .shared_processor = 102400},
     2.3e9,
     240e9,
     {128, 2}},
    {"H200 (sm_90a)",
     "132 SM, 1.75 GHz, 4.3 TB/s achievable, fp64 lanes at 1/2",
     {.arch = 90,
      .processors = 132,
      .threads_processor = 2048,
      .blocks_processor = 32,
      .max_cluster = 8,
      .shared_block = 232448,
      .shared_processor = 233472},
     1.75e9,
     4.3e12,
     {128, 64}},
};

/* Cycles from one reflector to the next: estimates from the instructions in the chain (sums by
 * shuffles, one barrier, square root and division, in double more of each). */
static double step_cycles(const qr_plan_t *p, gb10_dtype_t dtype)
{
    const double base = p->kind == QR_KIND_WARP ? 250 : p->kind == QR_KIND_GLOBAL ? 1500 : 450;
    return base * (gb10_dtype_is_double(dtype) ? 2 : 1);
}

static void row(const chip_t *c, gb10_dtype_t dtype, int n)
{
    const double size = (double)gb10_dtype_size(dtype), nb = n < 32 ? n : 32;
    const double cube = (double)n * n * n, parts = gb10_dtype_is_complex(dtype) ? 4 : 1;
    qr_plan_t p;
    if (qr_plan_make(&p, &c->device, dtype, n, n, 32, 1, 0))
        return;
    const double bytes = (3.0 * n * n + nb * n + n) * size;
    const double lanes = c->fma[gb10_dtype_is_double(dtype)];
    const int per = p.kind == QR_KIND_WARP ? p.resident * 4 *
                                                 (n <= 8    ? 4
                                                  : n <= 16 ? 2
                                                            : 1)
                                           : p.resident;
    const double flight = (double)per * c->device.processors / p.cluster;
    const double traffic = p.kind == QR_KIND_GLOBAL ? bytes + 3 * cube / 2 / 16 * size : bytes;
    const double floor = bytes / c->bandwidth;
    const double work =
        (2 * cube / 3 + nb * n * n / 2) * parts / (lanes * c->device.processors * c->clock);
    const double chain = n * step_cycles(&p, dtype) / c->clock / flight;
    double most = traffic / c->bandwidth;
    const char *limit = "memory";
    if (work > most)
        most = work, limit = "arithmetic";
    if (chain > most)
        most = chain, limit = "chain";
    printf("%c %5d  %-7s %4d x %d %7d %5d %9.0f %10.3f %10.3f %10.3f %6.0f %%  %s\n",
           gb10_dtype_letter(dtype), n, qr_kind_names[p.kind], p.threads, p.cluster,
           (int)p.layout.total, per, bytes, floor * 1e6, work * 1e6, chain * 1e6,
           100 * floor / most, limit);
}

int main(void)
{
    static const int sizes[] = {8, 16, 24, 32, 48, 64, 96, 128, 176, 192, 256, 352, 440, 512, 1024};
    for (size_t c = 0; c < sizeof chips / sizeof *chips; c++) {
        printf("\n%s: %s. Modelled, not measured.\n", chips[c].name, chips[c].source);
        printf("t     n  kernel  threads   shared   per     bytes   floor us    work us   chain us "
               "share   bound by\n");
        for (int dtype = 0; dtype < GB10_DTYPES; dtype++)
            for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
                row(&chips[c], (gb10_dtype_t)dtype, sizes[i]);
    }
    return 0;
}
