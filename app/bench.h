/* fugu bench: what is measured, on what, against whom, and how it is written down. */
#ifndef APP_BENCH_H
#define APP_BENCH_H

#include <stdio.h>
#include <sys/types.h>

#include "app/context.h"
#include "app/format.h"
#include "kernels/core/crew.h"
#include "kernels/gb10.h"

enum {
    BENCH_SIZES_MAX = 64,
    BENCH_SHAPES_MAX = 32,
    BENCH_REPEATS_MAX = 99,
    BENCH_PEERS_MAX = 16,
    BENCH_ALGORITHMS_MAX = 16
};

/* ---- cases (bench_cases.c, pure) ---- */

/* Where the batch lies: in cache with all its results, used again and again; or larger than the
 * last-level cache, so that every matrix comes from memory and every result goes there. */
typedef enum bench_place { BENCH_CACHE, BENCH_STREAM } bench_place_t;
extern const char *const bench_place_names[2];

/* One word of --shapes: rows * s by cols * s for each size s, or `fixed`: rows by cols. */
typedef struct bench_shape {
    int64_t rows, cols;
    char name[28];
    bool fixed;
} bench_shape_t;

typedef struct bench_case {
    gb10_dtype_t dtype;
    bench_place_t place;
    const char *shape; /* name of its bench_shape_t                  */
    int64_t m, n, nb;
    int threads;     /* that share the batch                           */
    int64_t granule; /* as gb10_geqrf_granule                          */
    int64_t count;   /* matrices in the batch                          */
} bench_case_t;

/* What the word all of --shapes stands for. */
#define BENCH_ALL_SHAPES "square,tall4,tall16,wide2,1024x128,2048x1024,8192x1024"

/* "4,8,16" and "square,tall4,1024x128". At most BENCH_SIZES_MAX and BENCH_SHAPES_MAX entries;
 * GB10_ERR_USAGE names the wrong word. */
gb10_status_t bench_parse_sizes(const char *text, int64_t *sizes, int *nsizes, gb10_error_t *err);
gb10_status_t bench_parse_shapes(const char *text, bench_shape_t *shapes, int *nshapes,
                                 gb10_error_t *err);

/* Bytes of one matrix read (A) and written (V, T, R, tau), each once. */
double bench_bytes_in(const bench_case_t *c);
double bench_bytes_out(const bench_case_t *c);

/* Matrices that kernels may treat together: the granule of ours, and at least 16 up to min(m, n) =
 * 16, where a peer may have vectors of 64 bytes. Batches and measurements are whole groups for each
 * thread, so that none works on part of one. */
int64_t bench_group(const bench_case_t *c);

/* Matrices in the batch of a case, at least a group for each thread. In cache: what fits half of
 * the level-2 cache of a thread, inputs and outputs. From memory: inputs of 1.5 last-level caches.
 */
int64_t bench_batch(const bench_case_t *c, int64_t level2, int64_t last);

/* GF/s that W (bytes/s) allows when each byte passes once; NaN when W is. */
double bench_memory_bound(const bench_case_t *c, double bandwidth);

/* GF/s that cannot be passed: P in cache; the smaller of P (GF/s) and the bound of W from memory.
 * P or W may be NaN when unknown: NaN when nothing is known. */
double bench_bound(const bench_case_t *c, double peak, double bandwidth);

/* Median of x, which is sorted in place; NaN when n = 0. */
double bench_median(double *x, int n);

/* How many matrices to time so that it takes `target` seconds, when `matrices` took `seconds`:
 * at most 64 times as many; whole batches in cache, whole groups for each thread from memory. */
int64_t bench_scale(const bench_case_t *c, int64_t matrices, double seconds, double target);

/* ---- the machine (bench_machine.c) ---- */

enum { BENCH_LIMIT_ROUNDS = 9 };

/* The clock of every figure, in seconds. One thread: processor time of this process, in which other
 * programs on the same cores hardly show. More: wall time, as waiting for each other counts. */
double bench_clock(int threads);
const char *bench_clock_name(int threads);

/* What bounds a figure, measured in turn with it and by the same clock. Each thread multiplies
 * matrices, or scales a part of an array, of its own. */
typedef struct bench_limits {
    double peak[2];   /* P: GF/s of sgemm and dgemm, all threads together, or NaN */
    double bandwidth; /* W: bytes/s read + written by a scale loop                */
} bench_limits_t;

typedef struct bench_machine {
    char cpu[96], date[32], command[512];
    char peak_source[96]; /* library behind P, or why there is none       */
    int64_t level2, last; /* bytes of the level-2 and last-level cache    */
    int64_t scaled;       /* bytes of each of the two arrays behind W     */
    int threads;
    bench_limits_t start; /* medians at the start                          */
    bench_limits_t now;   /* medians of the last case                      */
    int rounds;           /* measurements taken since bench_machine_case   */
    double peaks[2][BENCH_LIMIT_ROUNDS], bandwidths[BENCH_LIMIT_ROUNDS];
    void *library, *work, *from, *to;
    gb10_crew_t *crew;
} bench_machine_t;

/* Names the machine, then measures P and W. Release with bench_machine_close also on failure. */
gb10_status_t bench_machine_open(bench_machine_t *machine, int threads, gb10_error_t *err);
void bench_machine_close(bench_machine_t *machine);

/* P and W for one case: begin, measure what bounds the case up to BENCH_LIMIT_ROUNDS times (more
 * calls do nothing), take the medians into `now`. */
void bench_machine_begin(bench_machine_t *machine);
void bench_machine_measure(bench_machine_t *machine, const bench_case_t *c);
void bench_machine_end(bench_machine_t *machine);

/* ---- timing ---- */

/* Measurements of one algorithm on one case. */
typedef struct bench_timing {
    int64_t matrices; /* in each measurement; 0: cannot do this case */
    int rounds;       /* measurements wanted                         */
    int n;            /* measurements taken                          */
    double seconds[BENCH_REPEATS_MAX];
    double per_matrix; /* median seconds for one matrix, NaN if none  */
} bench_timing_t;

/* ---- fugu's own kernels (bench_ours.c) ---- */

typedef struct bench_engine {
    gb10_handle_t *handle;
    bench_case_t c;
    int64_t next; /* matrix of the batch that comes next */
    bench_timing_t timing;
} bench_engine_t;

typedef struct bench_ours {
    bench_engine_t team;   /* all threads                                            */
    bench_engine_t single; /* one of them, for the speed-up; no handle when all are 1 */
    void *A, *V, *T, *R, *tau;
    uint8_t *info;
    size_t capacity[6];
    gb10_times_t times; /* seconds of the team for one matrix, by part, summed over threads */
} bench_ours_t;

/* tuning: a path, or NULL. threads as for gb10_set_threads. Release with bench_ours_close also on
 * failure. */
gb10_status_t bench_ours_open(bench_ours_t *ours, const char *backend, const char *tuning,
                              int threads, gb10_error_t *err);
void bench_ours_close(bench_ours_t *ours);

/* Makes the batch of a case; the single thread uses the first matrices of it. */
gb10_status_t bench_ours_prepare(bench_ours_t *ours, const bench_case_t *team,
                                 const bench_case_t *single, gb10_error_t *err);

/* Factors the next `matrices` of the batch, from its end on to its start; *seconds by bench_clock
 * of the team. times: NULL, or what gb10_geqrf adds to. */
gb10_status_t bench_ours_run(bench_ours_t *ours, bench_engine_t *engine, int64_t matrices,
                             gb10_times_t *times, double *seconds, gb10_error_t *err);

/* ---- peers (bench_peers.c) ----
 * A peer is an executable peer_* that is asked on its standard input and answers on its standard
 * output, a line each. It opens with
 *     peer NAME VERSION...
 *     algorithm NAME TYPES LACKS...      once for each; LACKS: what it leaves out, or "nothing"
 *     ready
 * or with "cannot REASON..." in place of `ready`. Then
 *     prepare DTYPE M N NB COUNT col     -> ok
 *     run ALGORITHM MATRICES             -> seconds S
 * or "no REASON..." when it cannot do that. COUNT matrices of pseudo-random numbers are kept, each
 * column-major; `run` copies the next MATRICES of them and factors the copies, copy included in S,
 * which is processor time of the peer's process. It works on one thread. The end of its input ends
 * it. */

typedef struct bench_algorithm {
    char name[24], types[8], lacks[96];
    bench_timing_t timing;
    double *ratios; /* its time over fugu's, for every case it did */
    size_t nratios, capacity;
} bench_algorithm_t;

typedef struct bench_peer {
    char name[32], version[96];
    char line[1024]; /* what it has said and is not read yet */
    size_t have;
    pid_t pid;
    int to, from;
    bool alive;
    int nalgorithms;
    bench_algorithm_t algorithms[BENCH_ALGORITHMS_MAX];
} bench_peer_t;

typedef struct bench_peers {
    const app_context_t *app;
    double timeout; /* seconds to wait for an answer */
    int n;
    bench_peer_t *list;
} bench_peers_t;

/* Starts every peer_* in the folder, in order of name; what cannot run is said and left out.
 * The environment variables that BLAS libraries read tell them to use one thread. GB10_ERR_FILE
 * when the folder cannot be read. */
gb10_status_t bench_peers_open(bench_peers_t *peers, const char *folder, gb10_error_t *err);
void bench_peers_close(bench_peers_t *peers);

/* Has every peer make the batch; their timings start empty. */
void bench_peers_prepare(bench_peers_t *peers, const bench_case_t *c);

/* Seconds of one measurement; NaN when the peer cannot do it, or is lost (it is not alive then,
 * and that has been said). */
double bench_peer_run(bench_peers_t *peers, bench_peer_t *peer, const bench_algorithm_t *algorithm,
                      int64_t matrices);

/* Remembers how many times faster fugu was. */
gb10_status_t bench_peers_compare(bench_peers_t *peers, double per_matrix, gb10_error_t *err);

/* The fastest algorithm of the last case: *peer is NULL when there is none. */
const bench_algorithm_t *bench_peers_best(const bench_peers_t *peers, const bench_peer_t **peer);

/* ---- results (bench_report.c) ---- */

typedef struct bench_report {
    const app_context_t *app;
    const bench_machine_t *machine;
    const bench_ours_t *ours;
    const bench_peers_t *peers; /* n = 0 without peers */
    FILE *csv;                  /* NULL: not wanted    */
    json_t json;                /* file NULL: not wanted */
    const char *csv_path, *json_path;
} bench_report_t;

/* Opens the files (paths may be NULL) before anything is measured, so that a bad path costs no
 * time. */
gb10_status_t bench_report_open(bench_report_t *r, const char *csv, const char *json,
                                gb10_error_t *err);

/* Machine, peers and the head of the table; a row for each case; what the peers leave out. */
void bench_report_start(bench_report_t *r);
void bench_report_case(bench_report_t *r);
void bench_report_peers(const bench_report_t *r);

/* Ends the files. GB10_ERR_FILE when something could not be written. */
gb10_status_t bench_report_close(bench_report_t *r, gb10_error_t *err);

#endif
