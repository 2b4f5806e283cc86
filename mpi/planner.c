/* The planner: units are found by search in one record per batch, never stored. */
#include "mpi/dist.h"

#include <stdlib.h>

#include "kernels/core/alloc.h"

/* One batch in the stream of its bucket and type. Its first `head` groups of `quantum` matrices go
 * into the unit left open by the batch before (unit `first_new - 1`); the others make `nnew` new
 * units of `per` groups, from `first_new`. */
typedef struct entry {
    int64_t batch;
    int64_t head, per;
    int64_t first_new, nnew; /* canonical unit numbers */
    double cost;             /* of one new unit        */
} entry_t;

/* Consecutive units of equal cost, for the order of hand-out. */
typedef struct segment {
    int64_t first_unit, units, before;
    double cost;
} segment_t;

struct dist_plan {
    const gb10_batch_t *batches;
    const int64_t *out_bytes;
    int64_t memory; /* what is larger is huge */
    int64_t nentries, units, matrices;
    entry_t *entries; /* in canonical order of units */
    int64_t nsegments;
    segment_t *segments; /* largest cost first */
    int64_t bucket_units[GB10_BUCKETS], bucket_matrices[GB10_BUCKETS];
    int64_t max_in, max_out, max_matrices, max_runs;
};

/* The unit being filled while the plan is made. */
typedef struct open_unit {
    int64_t bytes_in, bytes_out, matrices, runs;
    entry_t *creator;
} open_unit_t;

/* Seconds by a rough machine (10 GF/s, 1 GB/s); only ratios matter, and only for the order. */
static double cost_of(const gb10_batch_t *b, int64_t out_bytes, int64_t matrices)
{
    double one = gb10_qr_flops(b->dtype, b->m, b->n) * 1e-10;
    return (double)matrices * (one + (double)(b->source_bytes + out_bytes) * 1e-9);
}

static int64_t min64(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t max64(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

gb10_bucket_t dist_plan_bucket(const dist_plan_t *plan, int64_t batch)
{
    const gb10_batch_t *b = &plan->batches[batch];
    if (b->source_bytes > plan->memory - plan->out_bytes[batch])
        return GB10_HUGE;
    return gb10_bucket_of(b->m, b->n);
}

/* Matrices that stay together in a unit; a huge one is alone. */
static int64_t quantum_of(const dist_plan_t *plan, int64_t batch)
{
    return dist_plan_bucket(plan, batch) == GB10_HUGE ? 1 : plan->batches[batch].quantum;
}

static int64_t groups_of(const gb10_batch_t *b)
{
    return (b->count + b->quantum - 1) / b->quantum;
}

/* Adds a run of `matrices` to the open unit and keeps the limits. */
static void grow_unit(dist_plan_t *plan, open_unit_t *open, int64_t batch, int64_t matrices)
{
    const gb10_batch_t *b = &plan->batches[batch];
    open->bytes_in += matrices * b->source_bytes;
    open->bytes_out += matrices * plan->out_bytes[batch];
    open->matrices += matrices;
    open->runs++;
    plan->max_in = max64(plan->max_in, open->bytes_in);
    plan->max_out = max64(plan->max_out, open->bytes_out);
    plan->max_matrices = max64(plan->max_matrices, open->matrices);
    plan->max_runs = max64(plan->max_runs, open->runs);
}

/* Every matrix is a unit, which no slot of a rank has to hold. */
static void add_huge(dist_plan_t *plan, int64_t batch)
{
    const gb10_batch_t *b = &plan->batches[batch];
    plan->entries[plan->nentries++] = (entry_t){.batch = batch,
                                                .per = 1,
                                                .first_new = plan->units,
                                                .nnew = b->count,
                                                .cost = cost_of(b, plan->out_bytes[batch], 1)};
    plan->units += b->count;
}

static void add_entry(dist_plan_t *plan, open_unit_t *open, int64_t batch, int64_t unit_bytes)
{
    const gb10_batch_t *b = &plan->batches[batch];
    int64_t group = b->quantum * (b->source_bytes + plan->out_bytes[batch]);
    int64_t groups = groups_of(b), used = open->bytes_in + open->bytes_out;
    entry_t *e = &plan->entries[plan->nentries++];
    e->batch = batch;
    e->first_new = plan->units;
    e->per = group > 0 ? max64(1, unit_bytes / group) : groups;
    if (open->creator && used <= unit_bytes)
        e->head = min64(groups, group > 0 ? (unit_bytes - used) / group : groups);
    if (open->creator && e->head > 0) {
        int64_t taken = min64(e->head * b->quantum, b->count);
        grow_unit(plan, open, batch, taken);
        if (open->creator->nnew == 1)
            open->creator->cost += cost_of(b, plan->out_bytes[batch], taken);
    }
    int64_t rest = groups - e->head;
    e->nnew = (rest + e->per - 1) / e->per;
    if (e->nnew > 0) {
        int64_t full = min64(e->per * b->quantum, b->count - e->head * b->quantum);
        int64_t last = b->count - (e->head + (e->nnew - 1) * e->per) * b->quantum;
        e->cost = cost_of(b, plan->out_bytes[batch], full);
        *open = (open_unit_t){0};
        grow_unit(plan, open, batch, full);
        *open = (open_unit_t){.creator = e};
        grow_unit(plan, open, batch, last);
        plan->units += e->nnew;
    }
}

static int by_cost(const void *a, const void *b)
{
    const segment_t *x = a, *y = b;
    if (x->cost != y->cost)
        return x->cost < y->cost ? 1 : -1;
    return x->first_unit < y->first_unit ? -1 : x->first_unit > y->first_unit;
}

static void make_segments(dist_plan_t *plan)
{
    for (int64_t i = 0; i < plan->nentries; i++) {
        const entry_t *e = &plan->entries[i];
        if (e->nnew > 0)
            plan->segments[plan->nsegments++] = (segment_t){e->first_new, e->nnew, 0, e->cost};
    }
    qsort(plan->segments, (size_t)plan->nsegments, sizeof *plan->segments, by_cost);
    int64_t before = 0;
    for (int64_t i = 0; i < plan->nsegments; i++) {
        plan->segments[i].before = before;
        before += plan->segments[i].units;
    }
}

static int stream_of(const dist_plan_t *plan, int64_t batch)
{
    int bucket = (int)dist_plan_bucket(plan, batch);
    return bucket * GB10_DTYPES + (int)plan->batches[batch].dtype;
}

/* Batches sorted by stream: a counting sort on (bucket, type), catalog order kept. */
static void make_entries(dist_plan_t *plan, int64_t nbatches, int64_t unit_bytes,
                         const int64_t *sorted)
{
    int stream = -1;
    open_unit_t open = {0};
    for (int64_t i = 0; i < nbatches; i++) {
        const gb10_batch_t *b = &plan->batches[sorted[i]];
        gb10_bucket_t bucket = dist_plan_bucket(plan, sorted[i]);
        int64_t before = plan->units;
        int this_stream = stream_of(plan, sorted[i]);
        if (this_stream != stream)
            open = (open_unit_t){0};
        stream = this_stream;
        if (bucket == GB10_HUGE)
            add_huge(plan, sorted[i]);
        else if (b->count > 0)
            add_entry(plan, &open, sorted[i], unit_bytes);
        plan->matrices += b->count;
        plan->bucket_matrices[bucket] += b->count;
        plan->bucket_units[bucket] += plan->units - before;
    }
}

gb10_status_t dist_plan_create(dist_plan_t **out, const gb10_batch_t *batches,
                               const int64_t *out_bytes, int64_t nbatches, int64_t unit_bytes,
                               int64_t memory, gb10_error_t *err)
{
    enum { STREAMS = GB10_BUCKETS * GB10_DTYPES };
    dist_plan_t *plan = NULL;
    int64_t *sorted = NULL, start[STREAMS + 1] = {0};
    size_t n = (size_t)nbatches;
    gb10_status_t status = GB10_OK;
    *out = NULL;
    if (unit_bytes < 1)
        return GB10_FAIL(err, GB10_ERR_INVALID, "unit size %lld is not positive",
                         (long long)unit_bytes);
    GB10_TRY(gb10_alloc(&plan, 1, sizeof *plan, "plan", err));
    plan->batches = batches;
    plan->out_bytes = out_bytes;
    plan->memory = memory;
    GB10_TRY(gb10_alloc(&plan->entries, n, sizeof(entry_t), "plan", err));
    GB10_TRY(gb10_alloc(&plan->segments, n, sizeof(segment_t), "plan", err));
    GB10_TRY(gb10_alloc(&sorted, n, sizeof *sorted, "plan", err));
    for (int64_t i = 0; i < nbatches; i++)
        start[stream_of(plan, i) + 1]++;
    for (int s = 0; s < STREAMS; s++)
        start[s + 1] += start[s];
    for (int64_t i = 0; i < nbatches; i++)
        sorted[start[stream_of(plan, i)]++] = i;
    make_entries(plan, nbatches, unit_bytes, sorted);
    make_segments(plan);
    *out = plan;
    plan = NULL;
cleanup:
    gb10_free(sorted);
    dist_plan_free(plan);
    return status;
}

void dist_plan_free(dist_plan_t *plan)
{
    if (!plan)
        return;
    gb10_free(plan->entries);
    gb10_free(plan->segments);
    gb10_free(plan);
}

int64_t dist_plan_units(const dist_plan_t *plan)
{
    return plan->units;
}

int64_t dist_plan_huge(const dist_plan_t *plan)
{
    return plan->units - plan->bucket_units[GB10_HUGE];
}

int64_t dist_plan_matrices(const dist_plan_t *plan)
{
    return plan->matrices;
}

int64_t dist_plan_bucket_units(const dist_plan_t *plan, gb10_bucket_t bucket)
{
    return plan->bucket_units[bucket];
}

int64_t dist_plan_bucket_matrices(const dist_plan_t *plan, gb10_bucket_t bucket)
{
    return plan->bucket_matrices[bucket];
}

void dist_plan_limits(const dist_plan_t *plan, int64_t *bytes_in, int64_t *bytes_out,
                      int64_t *matrices, int64_t *runs)
{
    *bytes_in = plan->max_in;
    *bytes_out = plan->max_out;
    *matrices = plan->max_matrices;
    *runs = plan->max_runs;
}

/* First entry with a matrix in unit i or later. */
static int64_t first_entry(const dist_plan_t *plan, int64_t i)
{
    int64_t lo = 0, hi = plan->nentries;
    while (lo < hi) {
        int64_t mid = lo + (hi - lo) / 2;
        const entry_t *e = &plan->entries[mid];
        if (e->first_new + e->nnew - 1 >= i)
            hi = mid;
        else
            lo = mid + 1;
    }
    return lo;
}

static gb10_status_t add_run(const dist_plan_t *plan, const entry_t *e, int64_t i,
                             gb10_unit_t *unit, gb10_error_t *err)
{
    const gb10_batch_t *b = &plan->batches[e->batch];
    int64_t quantum = quantum_of(plan, e->batch);
    gb10_run_t run = {e->batch, 0, min64(e->head * quantum, b->count)};
    if (i >= e->first_new) {
        run.first = (e->head + (i - e->first_new) * e->per) * quantum;
        run.count = min64(e->per * quantum, b->count - run.first);
    }
    gb10_status_t status = gb10_grow(&unit->runs, &unit->capacity, (size_t)unit->nruns + 1,
                                     sizeof run, "runs of a unit", err);
    if (status != GB10_OK)
        return status;
    unit->runs[unit->nruns++] = run;
    unit->matrices += run.count;
    unit->flops += (double)run.count * gb10_qr_flops(b->dtype, b->m, b->n);
    unit->bytes_in += run.count * b->source_bytes;
    unit->bytes_out += run.count * plan->out_bytes[e->batch];
    return GB10_OK;
}

gb10_status_t dist_unit(const dist_plan_t *plan, int64_t i, gb10_unit_t *unit, gb10_error_t *err)
{
    if (i < 0 || i >= plan->units)
        return GB10_FAIL(err, GB10_ERR_INTERNAL, "unit %lld of %lld does not exist", (long long)i,
                         (long long)plan->units);
    int64_t at = first_entry(plan, i);
    int64_t batch = plan->entries[at].batch;
    *unit = (gb10_unit_t){.id = i,
                          .bucket = dist_plan_bucket(plan, batch),
                          .dtype = plan->batches[batch].dtype,
                          .runs = unit->runs,
                          .capacity = unit->capacity};
    gb10_status_t status = GB10_OK;
    for (; at < plan->nentries && status == GB10_OK; at++) {
        const entry_t *e = &plan->entries[at];
        if (e->first_new - (e->head > 0) > i)
            break;
        status = add_run(plan, e, i, unit, err);
    }
    return status;
}

static const segment_t *segment_at(const dist_plan_t *plan, int64_t i)
{
    int64_t lo = 0, hi = plan->nsegments - 1;
    while (lo < hi) {
        int64_t mid = lo + (hi - lo + 1) / 2;
        if (plan->segments[mid].before <= i)
            lo = mid;
        else
            hi = mid - 1;
    }
    return &plan->segments[lo];
}

int64_t dist_plan_order(const dist_plan_t *plan, int64_t i)
{
    const segment_t *s = segment_at(plan, i);
    return s->first_unit + (i - s->before);
}

/* Ranks as a heap, least loaded first; ties go to the lower rank. */
typedef struct load {
    double cost;
    int32_t rank;
} load_t;

static int lighter(load_t a, load_t b)
{
    return a.cost < b.cost || (a.cost == b.cost && a.rank < b.rank);
}

static void sift_down(load_t *heap, int n)
{
    for (int at = 0;;) {
        int child = 2 * at + 1;
        if (child >= n)
            return;
        if (child + 1 < n && lighter(heap[child + 1], heap[child]))
            child++;
        if (!lighter(heap[child], heap[at]))
            return;
        load_t swap = heap[at];
        heap[at] = heap[child];
        heap[child] = swap;
        at = child;
    }
}

gb10_status_t dist_plan_static(const dist_plan_t *plan, int nranks, const uint8_t *done,
                               int32_t *owner, gb10_error_t *err)
{
    load_t *heap = NULL;
    gb10_status_t status = gb10_alloc(&heap, (size_t)nranks, sizeof *heap, "static schedule", err);
    if (status != GB10_OK)
        return status;
    for (int r = 0; r < nranks; r++)
        heap[r].rank = r;
    for (int64_t i = 0; i < plan->units; i++) {
        owner[i] = -1;
        if (done && done[dist_plan_order(plan, i)])
            continue;
        owner[i] = heap[0].rank;
        heap[0].cost += segment_at(plan, i)->cost;
        sift_down(heap, nranks);
    }
    gb10_free(heap);
    return GB10_OK;
}

static void pass_done(dist_dealer_t *d)
{
    while (d->next < d->plan->units && d->done && d->done[dist_plan_order(d->plan, d->next)])
        d->next++;
}

void dist_dealer_init(dist_dealer_t *dealer, const dist_plan_t *plan, const uint8_t *done)
{
    *dealer = (dist_dealer_t){.plan = plan, .done = done};
    for (int64_t i = 0; i < plan->units; i++)
        if (!done || !done[dist_plan_order(plan, i)]) {
            dealer->open++;
            dealer->left += segment_at(plan, i)->cost;
        }
    pass_done(dealer);
}

int64_t dist_deal(dist_dealer_t *dealer, int nranks, int64_t most, int64_t *unit)
{
    double fair = dealer->left / (4.0 * nranks), sum = 0;
    int64_t count = 0;
    while (count < most && dealer->next < dealer->plan->units) {
        double cost = segment_at(dealer->plan, dealer->next)->cost;
        if (count > 0 && sum + cost > fair)
            break;
        sum += cost;
        unit[count++] = dist_plan_order(dealer->plan, dealer->next++);
        pass_done(dealer);
    }
    dealer->left -= sum;
    return count;
}
