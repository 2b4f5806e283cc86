/* Stands where the cuda backend would, in a build without it. */
#include "kernels/backend.h"

static const char *probe(void)
{
    return "not compiled in (the build found no nvcc)";
}

static const char *isa(void)
{
    return "none";
}

const gb10_backend_t gb10_backend_cuda = {
    .name = "cuda", .priority = 5, .probe = probe, .isa = isa, .reads_device = 1};
