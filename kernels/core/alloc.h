/* Allocation with overflow checks and a hook that lets a test fail the n-th call. */
#ifndef GB10_CORE_ALLOC_H
#define GB10_CORE_ALLOC_H

#include <stddef.h>

#include "kernels/core/status.h"

enum { GB10_ALIGN = 64 };

/* Sets *p to count * size bytes, aligned to GB10_ALIGN and zeroed, or to NULL on failure. Zero
 * bytes gives a valid pointer. `what` names the object in the message. Release with gb10_free. */
gb10_status_t gb10_alloc(void *p, size_t count, size_t size, const char *what, gb10_error_t *err);

/* Grows the array at *p (from gb10_alloc or NULL) from *capacity to at least `need` elements;
 * old contents are kept, new ones zeroed. */
gb10_status_t gb10_grow(void *p, size_t *capacity, size_t need, size_t size, const char *what,
                        gb10_error_t *err);

/* As strdup. */
gb10_status_t gb10_strdup(char **copy, const char *text, gb10_error_t *err);

/* Releases; p may be NULL. */
void gb10_free(void *p);

/* Test hook: the n-th allocation from now fails (1 = the next one); 0 turns it off.
 * Returns the number of allocations since the last call of this function. */
long gb10_alloc_fail_at(long n);

#endif
