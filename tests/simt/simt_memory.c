/* Kernels on the CPU use the host's memory and are over when their launch returns. */
#include "tests/simt/simt_memory.h"

#include <stdlib.h>
#include <string.h>

#include "tests/simt/simt_run.h"

int simt_on_gpu(void)
{
    return 0;
}

void *simt_new(size_t bytes)
{
    void *p = NULL;
    /* Not rounded up: AddressSanitizer then sees the first byte beyond. */
    if (posix_memalign(&p, 256, bytes ? bytes : 1) != 0)
        return NULL;
    memset(p, 0xa5, bytes);
    return p;
}

void simt_free(void *p)
{
    free(p);
}

gb10_status_t simt_wait(gb10_error_t *err)
{
    (void)err;
    return GB10_OK;
}
