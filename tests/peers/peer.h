/* One peer of `fugu bench --peers`: answers the line protocol of app/bench.h (prepare, run), keeps
 * the batch, takes the time and looks at the result. A program says what it can do and factors. */
#ifndef TESTS_PEERS_PEER_H
#define TESTS_PEERS_PEER_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A batch: `count` matrices m x n, column-major, one after the other (leading dimension m). */
typedef struct peer_batch {
    char dtype;  /* s, d, c, z */
    int m, n, k; /* k = min(m, n) */
    int nb;      /* block size of T, at most k */
    long count;
    size_t size;   /* bytes of an element */
    const char *A; /* stays as it is */
    char *F;       /* m x n each: receives V and R in LAPACK's packed form */
    char *T;       /* room for k x k elements for each matrix */
    char *tau;     /* k each */
} peer_batch_t;

/* Address of what belongs to matrix i in an array with so many elements for each. */
static inline char *peer_at(const peer_batch_t *b, const char *base, long i, size_t elements)
{
    return (char *)base + (size_t)i * elements * b->size;
}

typedef struct peer_algorithm {
    const char *name, *types, *lacks;
    /* Copies and factors matrices [first, first + count). NULL, or why it cannot. */
    const char *(*run)(const peer_batch_t *b, long first, long count);
} peer_algorithm_t;

typedef struct peer_program {
    const char *name, *version;
    const char *reason; /* NULL, or why it cannot run */
    const peer_algorithm_t *algorithms;
    int nalgorithms;
    const char *(*prepare)(const peer_batch_t *b); /* may be NULL: workspace; NULL, or why not */
} peer_program_t;

/* Serves until the end of standard input; returns the exit code. Whatever else writes to standard
 * output (a library's notice) goes to standard error. */
int peer_serve(const peer_program_t *program);

#ifdef __cplusplus
}
#endif
#endif
