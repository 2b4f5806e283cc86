/* Simulates the hand-out of units to many ranks, over the planner and the hand-out rule that fugu
 * uses, with unit costs given as rates: no MPI, no files. Prints the table of jobs/README.md.
 *
 * A rank works off its units one after the other, QUEUE of them in its pipeline, and asks rank 0
 * for more when a place is free and none is in store; rank 0 answers one request after the other,
 * each MESSAGE seconds; a message travels TRAVEL seconds. In the row with a loss, one rank in a
 * hundred dies at half time: the units it had are done again by a second run over what is missing,
 * as --resume does. Usage: sim_dispatch */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "kernels/core/alloc.h"
#include "mpi/dist.h"

enum { QUEUE = 3, REPLY_MAX = 32, NB = 32 };
static const double MESSAGE = 20e-6,
                    TRAVEL = 20e-6; /* measured on one node: 6 to 15 us; TCP more */
static const double DISK = 1e9;     /* bytes/s of a rank, read and written */
/* GF/s of a rank by bucket: one AVX2 core, fugu bench. */
static const double RATE[GB10_BUCKETS] = {8e9, 16e9, 25e9, 27e9, 23e9};

typedef struct mix {
    const char *name;
    int nbatches;
    gb10_batch_t batch[4];
} mix_t;

/* Counts are for one rank. */
static const mix_t mixes[] = {{"64 x 64 d", 1, {{GB10_D, 64, 64, 100000, 1, 64 * 64 * 8}}},
                              {"8 x 8 s", 1, {{GB10_S, 8, 8, 5000000, 1, 8 * 8 * 4}}},
                              {"8 to 2000, mixed",
                               4,
                               {{GB10_D, 8, 8, 1000000, 1, 512},
                                {GB10_D, 100, 60, 20000, 1, 48000},
                                {GB10_Z, 400, 400, 40, 1, 2560000},
                                {GB10_D, 2000, 2000, 4, 1, 32000000}}}};

typedef struct event {
    double time;
    int rank;
} event_t;

typedef struct sim {
    const dist_plan_t *plan;
    const double *cost; /* by canonical index */
    uint8_t *done;
    int64_t units, messages;
    int ranks, heap_size;
    event_t *heap;      /* by time: when a rank's next place gets free */
    double *busy_until; /* when a rank has worked off its queue        */
    double *places;     /* ranks x QUEUE: ends of a rank's last units  */
    double server;      /* when rank 0 is free                         */
} sim_t;

static void swap(event_t *a, event_t *b)
{
    event_t t = *a;
    *a = *b;
    *b = t;
}

static void push(sim_t *s, event_t e)
{
    int i = s->heap_size++;
    s->heap[i] = e;
    for (; i > 0 && s->heap[(i - 1) / 2].time > s->heap[i].time; i = (i - 1) / 2)
        swap(&s->heap[i], &s->heap[(i - 1) / 2]);
}

static event_t pop(sim_t *s)
{
    event_t top = s->heap[0];
    s->heap[0] = s->heap[--s->heap_size];
    for (int i = 0;;) {
        int child = 2 * i + 1;
        if (child + 1 < s->heap_size && s->heap[child + 1].time < s->heap[child].time)
            child++;
        if (child >= s->heap_size || s->heap[i].time <= s->heap[child].time)
            return top;
        swap(&s->heap[i], &s->heap[child]);
        i = child;
    }
}

/* When a rank has a free place and nothing in store: the end of the last but two of its units. */
static double next_request(const sim_t *s, int rank)
{
    double when = INFINITY;
    for (int q = 0; q < QUEUE; q++)
        when = fmin(when, s->places[rank * QUEUE + q]);
    return when;
}

static void give(sim_t *s, int rank, double time, int64_t unit)
{
    int place = 0;
    for (int q = 0; q < QUEUE; q++)
        if (s->places[rank * QUEUE + q] < s->places[rank * QUEUE + place])
            place = q;
    s->busy_until[rank] = fmax(s->busy_until[rank], time) + s->cost[unit];
    s->places[rank * QUEUE + place] = s->busy_until[rank];
}

/* Hands everything that is not done out; a rank with death[rank] < end of a unit does not do it.
 * Returns the time when the last unit ends. */
static double hand_out(sim_t *s, const double *death)
{
    double end = 0;
    dist_dealer_t dealer;
    dist_dealer_init(&dealer, s->plan, s->done);
    s->heap_size = 0;
    s->server = 0;
    for (int r = 0; r < s->ranks; r++) {
        s->busy_until[r] = 0;
        for (int q = 0; q < QUEUE; q++)
            s->places[r * QUEUE + q] = 0;
        push(s, (event_t){0, r});
    }
    while (s->heap_size > 0) {
        int64_t unit[REPLY_MAX];
        event_t e = pop(s);
        if (death && death[e.rank] < e.time)
            continue;
        int64_t n = dist_deal(&dealer, s->ranks, REPLY_MAX, unit);
        if (n == 0)
            break;
        double asked = e.time + (e.rank ? TRAVEL : 0);
        s->server = fmax(s->server, asked) + MESSAGE;
        double there = s->server + (e.rank ? TRAVEL : 0);
        s->messages += e.rank != 0;
        for (int64_t i = 0; i < n; i++) {
            give(s, e.rank, there, unit[i]);
            if (death && death[e.rank] < s->busy_until[e.rank])
                continue;
            s->done[unit[i]] = 1;
            end = fmax(end, s->busy_until[e.rank]);
        }
        push(s, (event_t){fmax(there, next_request(s, e.rank)), e.rank});
    }
    return end;
}

static double unit_cost(const gb10_unit_t *u)
{
    return u->flops / RATE[u->bucket] + (double)(u->bytes_in + u->bytes_out) / DISK;
}

static void simulate(const mix_t *mix, int ranks)
{
    gb10_batch_t batches[4];
    int64_t out[4];
    gb10_error_t err = {0};
    dist_plan_t *plan = NULL;
    gb10_unit_t unit = {0};
    for (int i = 0; i < mix->nbatches; i++) {
        gb10_batch_t *b = &batches[i];
        *b = mix->batch[i];
        b->count *= ranks;
        int64_t k = b->m < b->n ? b->m : b->n, rows = k < NB ? k : NB;
        out[i] = (b->m * k + rows * k + k * b->n + k) * (int64_t)gb10_dtype_size(b->dtype) + 65;
    }
    if (dist_plan_create(&plan, batches, out, mix->nbatches, 64 << 20, INT64_MAX, &err) != GB10_OK)
        exit(1);
    sim_t s = {.plan = plan, .units = dist_plan_units(plan), .ranks = ranks};
    double *cost = NULL, *death = NULL, sum = 0, longest = 0;
    if (gb10_alloc(&cost, (size_t)s.units, sizeof *cost, "", &err) != GB10_OK ||
        gb10_alloc(&s.done, (size_t)s.units, sizeof *s.done, "", &err) != GB10_OK ||
        gb10_alloc(&s.heap, (size_t)ranks + 1, sizeof *s.heap, "", &err) != GB10_OK ||
        gb10_alloc(&s.busy_until, (size_t)ranks, sizeof(double), "", &err) != GB10_OK ||
        gb10_alloc(&s.places, (size_t)ranks * QUEUE, sizeof(double), "", &err) != GB10_OK ||
        gb10_alloc(&death, (size_t)ranks, sizeof *death, "", &err) != GB10_OK)
        exit(1);
    for (int64_t i = 0; i < s.units; i++) {
        if (dist_unit(plan, i, &unit, &err) != GB10_OK)
            exit(1);
        cost[i] = unit_cost(&unit);
        sum += cost[i];
        longest = fmax(longest, cost[i]);
    }
    s.cost = cost;
    double end = hand_out(&s, NULL), first_end = INFINITY;
    for (int r = 0; r < ranks; r++)
        first_end = fmin(first_end, s.busy_until[r]);
    int64_t messages = s.messages;
    for (int64_t i = 0; i < s.units; i++)
        s.done[i] = 0;
    for (int r = 0; r < ranks; r++)
        death[r] = r % 100 == 99 || (ranks < 100 && r == ranks - 1) ? end / 2 : INFINITY;
    hand_out(&s, death);
    int64_t lost = 0;
    for (int64_t i = 0; i < s.units; i++)
        lost += !s.done[i];
    double again = hand_out(&s, NULL);
    printf("| %-16s | %6d | %9lld | %8.1f | %5.1f %% | %5.2f | %8.0f | %5.2f %% | %5lld, %.1f |\n",
           mix->name, ranks, (long long)s.units, end, 100 * sum / ranks / end,
           (end - first_end) / longest, (double)messages / end,
           100 * (double)messages * MESSAGE / end, (long long)lost, again);
    gb10_free(cost);
    gb10_free(death);
    gb10_free(s.done);
    gb10_free(s.heap);
    gb10_free(s.busy_until);
    gb10_free(s.places);
    gb10_free(unit.runs);
    dist_plan_free(plan);
}

int main(void)
{
    static const int ranks[] = {10, 1000, 10000};
    printf(
        "| matrices         |  ranks |     units |  seconds |   busy | spread | messages | rank 0 "
        " | lost, seconds |\n|---|---|---|---|---|---|---|---|---|\n");
    for (size_t m = 0; m < sizeof mixes / sizeof *mixes; m++)
        for (size_t r = 0; r < sizeof ranks / sizeof *ranks; r++)
            simulate(&mixes[m], ranks[r]);
    return 0;
}
