#include "kernels/core/alloc.h"

#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static atomic_long fail_at;
static atomic_long calls;

long gb10_alloc_fail_at(long n)
{
    atomic_store(&fail_at, n);
    return atomic_exchange(&calls, 0);
}

static int refused(void)
{
    long call = atomic_fetch_add(&calls, 1) + 1;
    long limit = atomic_load(&fail_at);
    return limit > 0 && call == limit;
}

gb10_status_t gb10_alloc(void *p, size_t count, size_t size, const char *what, gb10_error_t *err)
{
    void *memory = NULL;
    size_t bytes = 0;
    memcpy(p, &memory, sizeof memory);
    int too_big = __builtin_mul_overflow(count, size, &bytes) || bytes > SIZE_MAX / 2;
    if (!too_big && !refused()) {
        size_t rounded = (bytes + GB10_ALIGN) / GB10_ALIGN * GB10_ALIGN;
        memory = aligned_alloc(GB10_ALIGN, rounded);
        if (memory)
            memset(memory, 0, rounded);
    }
    if (!memory)
        return GB10_FAIL(err, GB10_ERR_MEMORY, "out of memory: %zu x %zu bytes for %s", count, size,
                         what);
    memcpy(p, &memory, sizeof memory);
    return GB10_OK;
}

gb10_status_t gb10_grow(void *p, size_t *capacity, size_t need, size_t size, const char *what,
                        gb10_error_t *err)
{
    if (need <= *capacity)
        return GB10_OK;
    size_t wanted = need > *capacity * 2 ? need : *capacity * 2;
    void *bigger = NULL, *old = NULL;
    gb10_status_t status = gb10_alloc(&bigger, wanted, size, what, err);
    if (status != GB10_OK)
        return status;
    memcpy(&old, p, sizeof old);
    if (old)
        memcpy(bigger, old, *capacity * size);
    gb10_free(old);
    memcpy(p, &bigger, sizeof bigger);
    *capacity = wanted;
    return GB10_OK;
}

gb10_status_t gb10_strdup(char **copy, const char *text, gb10_error_t *err)
{
    size_t length = strlen(text) + 1;
    gb10_status_t status = gb10_alloc(copy, length, 1, "text", err);
    if (status == GB10_OK)
        memcpy(*copy, text, length);
    return status;
}

void gb10_free(void *p)
{
    free(p);
}
