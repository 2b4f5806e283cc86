/* What a handle holds (private to kernels/). */
#ifndef GB10_HANDLE_H
#define GB10_HANDLE_H

#include "kernels/backend.h"

struct gb10_handle {
    const gb10_backend_t *backend;
    void *state;
    const char *reason;
    gb10_equipment_t equipment; /* lent to the state */
    gb10_tuning_t *tuning;      /* NULL: the built-in table is in use */
    char stamp[GB10_TUNING_STAMP];
    void *workspace;
    size_t capacity;
    gb10_error_t error;
};

/* The handle's record, emptied: where the failures of a call go. */
gb10_error_t *gb10_handle_error(gb10_handle_t *handle);

/* Makes the workspace hold at least `bytes`; what was in it is lost. */
gb10_status_t gb10_handle_reserve(gb10_handle_t *handle, size_t bytes, gb10_error_t *err);

#endif
