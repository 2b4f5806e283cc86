#include "tests/peers/peer.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { ALIGN = 64, ALGORITHMS_MAX = 16 };

typedef struct buffer {
    char *data;
    size_t size;
} buffer_t;

/* Processor time of this process, as fugu bench takes its own. */
static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Room for so many bytes, all of them touched. 0 when there is no memory. */
static int reserve(buffer_t *b, size_t bytes)
{
    if (bytes <= b->size)
        return 1;
    free(b->data);
    b->size = (bytes + ALIGN) / ALIGN * ALIGN;
    b->data = (char *)aligned_alloc(ALIGN, b->size);
    if (b->data)
        memset(b->data, 0, b->size);
    else
        b->size = 0;
    return b->data != NULL;
}

static int is_double(char dtype)
{
    return dtype == 'd' || dtype == 'z';
}

static int is_complex(char dtype)
{
    return dtype == 'c' || dtype == 'z';
}

/* Numbers in [-1/2, 1/2), again after a prime number of them. */
static void fill(const peer_batch_t *b, char *A)
{
    enum { PERIOD = 65521 };
    size_t n = (size_t)b->m * (size_t)b->n * (size_t)b->count * (is_complex(b->dtype) ? 2 : 1);
    unsigned long long x = 88172645463325252ULL; /* xorshift: Marsaglia, 2003 */
    for (size_t i = 0; i < n; i++) {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        double value = (double)(x >> 11) * 0x1p-53 - 0.5;
        if (is_double(b->dtype))
            ((double *)A)[i] = i < PERIOD ? value : ((double *)A)[i - PERIOD];
        else
            ((float *)A)[i] = i < PERIOD ? (float)value : ((float *)A)[i - PERIOD];
    }
}

/* Sum of squares of the first `rows` elements of a column. */
static double squares(const peer_batch_t *b, const char *column, int rows)
{
    double sum = 0;
    for (int i = 0; i < rows * (is_complex(b->dtype) ? 2 : 1); i++) {
        double x = is_double(b->dtype) ? ((const double *)column)[i] : ((const float *)column)[i];
        sum += x * x;
    }
    return sum;
}

/* The columns of R must be as long as those of A: guards against wrong calls, not an accuracy. */
static int looks_right(const peer_batch_t *b, long i)
{
    double limit = is_double(b->dtype) ? 1e-9 : 1e-3;
    const char *a = peer_at(b, b->A, i, (size_t)b->m * (size_t)b->n);
    const char *f = peer_at(b, b->F, i, (size_t)b->m * (size_t)b->n);
    for (int j = 0; j < b->n; j++) {
        size_t at = (size_t)j * (size_t)b->m * b->size;
        double want = squares(b, a + at, b->m), got = squares(b, f + at, j < b->k ? j + 1 : b->k);
        if (!(fabs(got - want) <= limit * want))
            return 0;
    }
    return 1;
}

typedef struct server {
    const peer_program_t *program;
    FILE *out;
    peer_batch_t batch;
    buffer_t A, F, T, tau;
    long next[ALGORITHMS_MAX]; /* matrix that comes next */
    int checked[ALGORITHMS_MAX];
} server_t;

static const char *prepare(server_t *s, const char *line)
{
    peer_batch_t b = {.count = 0};
    char layout[8] = "";
    if (sscanf(line, "prepare %c %d %d %d %ld %7s", &b.dtype, &b.m, &b.n, &b.nb, &b.count,
               layout) != 6 ||
        !strchr("sdcz", b.dtype) || b.m < 1 || b.n < 1 || b.nb < 1 || b.count < 1)
        return "such a request";
    if (strcmp(layout, "col") != 0)
        return "layout but col";
    b.k = b.m < b.n ? b.m : b.n;
    b.nb = b.nb < b.k ? b.nb : b.k;
    b.size = (size_t)(is_double(b.dtype) ? 8 : 4) * (is_complex(b.dtype) ? 2 : 1);
    size_t all = (size_t)b.count * b.size, m = (size_t)b.m, n = (size_t)b.n, k = (size_t)b.k;
    s->batch.count = 0;
    if (!reserve(&s->A, all * m * n) || !reserve(&s->F, all * m * n) ||
        !reserve(&s->T, all * k * k) || !reserve(&s->tau, all * k))
        return "memory for that batch";
    b.A = s->A.data;
    b.F = s->F.data;
    b.T = s->T.data;
    b.tau = s->tau.data;
    fill(&b, s->A.data);
    const char *why = s->program->prepare ? s->program->prepare(&b) : NULL;
    memset(s->next, 0, sizeof s->next);
    memset(s->checked, 0, sizeof s->checked);
    if (!why)
        s->batch = b;
    return why;
}

static const char *run(server_t *s, const char *line, double *seconds)
{
    const peer_batch_t *b = &s->batch;
    char name[32];
    long matrices;
    int a = 0;
    if (sscanf(line, "run %31s %ld", name, &matrices) != 2 || matrices < 1 || b->count < 1)
        return "such a request";
    while (a < s->program->nalgorithms && strcmp(s->program->algorithms[a].name, name) != 0)
        a++;
    if (a == s->program->nalgorithms || !strchr(s->program->algorithms[a].types, b->dtype))
        return "such an algorithm for this type";
    double start = now();
    long first = s->next[a];
    for (long left = matrices, part; left > 0; left -= part) {
        part = b->count - s->next[a] < left ? b->count - s->next[a] : left;
        const char *why = s->program->algorithms[a].run(b, s->next[a], part);
        if (why)
            return why;
        s->next[a] = (s->next[a] + part) % b->count;
    }
    *seconds = now() - start;
    if (!s->checked[a] && !looks_right(b, first))
        return "right result";
    s->checked[a] = 1;
    return NULL;
}

int peer_serve(const peer_program_t *p)
{
    server_t s = {.program = p, .out = fdopen(dup(1), "w")};
    char line[256];
    double seconds = 0;
    if (!s.out || dup2(2, 1) < 0 || p->nalgorithms > ALGORITHMS_MAX)
        return 1;
    fprintf(s.out, "peer %s %s\n", p->name, p->version ? p->version : "");
    for (int i = 0; i < p->nalgorithms && !p->reason; i++)
        fprintf(s.out, "algorithm %s %s %s\n", p->algorithms[i].name, p->algorithms[i].types,
                p->algorithms[i].lacks);
    if (p->reason)
        fprintf(s.out, "cannot %s\n", p->reason);
    else
        fprintf(s.out, "ready\n");
    fflush(s.out);
    while (!p->reason && fgets(line, sizeof line, stdin)) {
        int is_run = strncmp(line, "run ", 4) == 0;
        const char *why = is_run ? run(&s, line, &seconds) : prepare(&s, line);
        if (why)
            fprintf(s.out, "no %s\n", why);
        else if (is_run)
            fprintf(s.out, "seconds %.9g\n", seconds);
        else
            fprintf(s.out, "ok\n");
        fflush(s.out);
    }
    return p->reason != NULL;
}
