/* The backend table (private to kernels/): what a backend is and what it can do. */
#ifndef GB10_BACKEND_H
#define GB10_BACKEND_H

#include "kernels/core/crew.h"
#include "kernels/gb10.h"
#include "kernels/tuning/tuning.h"

/* Operations; the args type of each is gb10_<name>_args_t. The first GB10_OPS are a backend's, the
 * others the library's own. */
typedef enum gb10_op_id {
    GB10_OP_GEQRF = 0,
    GB10_OP_FORM_T = 1,
    GB10_OP_FORM_Q = 2,
    GB10_OP_APPLY_Q = 3,
    GB10_OP_REPACK = 4,
    GB10_OP_SYRK = 5,
    GB10_OP_CHECK = 6,
    GB10_OP_COMPARE_R = 7
} gb10_op_id_t;
enum { GB10_OPS = 6, GB10_OPS_ALL = 8 };

/* One operation. Arguments are validated by gb10.c before any of these is called.
 *   supports: NULL when it can serve args, else the reason.
 *   need:     bytes of workspace for one caller, enough for any slice of the batch as well.
 *   submit:   runs, or starts, the operation; workspace has `need` bytes, aligned to 64. On a
 *             backend with `shared` it is called by several threads at once, each with its own
 *             slice of the batch, workspace, times and error record.
 *   wait:     NULL when submit completes the operation.
 *   layouts:  1u << gb10_layout_t for each layout that it reads and writes itself; views in host
 *             memory with any other are repacked, slice by slice, to row-major ones and back. 0
 *             stands for GB10_LINEAR. After it the padding of interleaved outputs is written.
 *   granule:  matrices that are treated together, one in each lane of a vector: slices of the batch
 *             are multiples of it, so that few lanes stay empty. NULL: 1.
 *   whole:    not 0 when, with this many threads, the operation wants the batch in one piece and
 *             uses the crew of its equipment itself: whole_need and whole_submit are then called in
 *             the place of need and submit. NULL: never. */
enum {
    GB10_LINEAR = 1u << GB10_STRIDED | 1u << GB10_POINTERS | 1u << GB10_INTERLEAVED,
    GB10_ALL_LAYOUTS = GB10_LINEAR | 1u << GB10_TILES | 1u << GB10_PANELS
};
typedef struct gb10_op {
    const char *(*supports)(const void *args);
    size_t (*need)(void *state, const void *args);
    gb10_status_t (*submit)(void *state, const void *args, void *workspace, gb10_error_t *err);
    gb10_status_t (*wait)(void *state, gb10_error_t *err);
    unsigned layouts;
    int64_t (*granule)(void *state, const void *args);
    int (*whole)(void *state, const void *args, int threads);
    size_t (*whole_need)(void *state, const void *args);
    gb10_status_t (*whole_submit)(void *state, const void *args, void *workspace,
                                  gb10_error_t *err);
} gb10_op_t;

/* What a handle lends to its backend's state. */
typedef struct gb10_equipment {
    gb10_crew_t *crew; /* NULL: one thread. gb10_crew_run from within a slice stays in its thread */
    const gb10_tuning_t *tuning; /* never NULL */
} gb10_equipment_t;

typedef struct gb10_backend {
    const char *name;
    int priority;                     /* "auto" takes the highest that probes NULL           */
    const char *(*probe)(void);       /* NULL when usable here, else the reason              */
    const char *(*isa)(void);         /* instruction set or architecture in use              */
    int reads_device;                 /* not 0: takes views in device memory                 */
    const char *(*isa_at)(int level); /* names, lowest first, NULL past the end; NULL: one only */
    /* State of one handle (a team of threads, a stream), given to submit and wait. NULL: none. */
    gb10_status_t (*open)(void **state, gb10_error_t *err);
    void (*close)(void *state); /* NULL allowed as state                               */
    /* Tells the state what it may use from now on, until told otherwise. NULL: not interested. */
    void (*equip)(void *state, const gb10_equipment_t *equipment);
    int shared;              /* not 0: see submit                                   */
    gb10_op_t ops[GB10_OPS]; /* submit NULL: falls to cpu-ref for host memory       */
} gb10_backend_t;

extern const gb10_backend_t gb10_backend_cpu_ref;
extern const gb10_backend_t gb10_backend_cpu;
extern const gb10_backend_t gb10_backend_cuda; /* in a build without it: never usable */

/* The i-th backend that was built, in a fixed order, or NULL past the end (registry.c). */
const gb10_backend_t *gb10_backend_at(int i);

#endif
