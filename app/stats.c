#include "app/stats.h"

#include <math.h>
#include <string.h>

#include "kernels/core/alloc.h"

void stats_init(run_stats_t *stats)
{
    *stats = (run_stats_t){0};
    for (int b = 0; b < GB10_BUCKETS; b++)
        for (int i = 0; i < GB10_METRICS; i++)
            stats->bucket[b].worst[i] = -1;
}

double stats_unit(int metric, gb10_dtype_t dtype, int64_t m, int64_t n)
{
    int64_t k = m < n ? m : n;
    bool by_root = metric == GB10_ORTHOGONALITY || metric == GB10_T_CONSISTENCY;
    return gb10_dtype_u(dtype) * (by_root && k > 1 ? sqrt((double)k) : 1.0);
}

void stats_add(bucket_stats_t *bucket, gb10_dtype_t dtype, int64_t m, int64_t n, uint8_t info,
               const double *metrics, int checked_full)
{
    bucket->matrices++;
    bucket->checked_full += checked_full;
    bucket->by_info[info < GB10_INFOS ? info : 0]++;
    for (int i = 0; i < GB10_RDIAG_MIN; i++) {
        double value = metrics[i] / stats_unit(i, dtype, m, n);
        if (value > bucket->worst[i])
            bucket->worst[i] = value;
    }
}

static int before(const bad_matrix_t *a, int64_t dataset, int64_t index)
{
    return a->dataset < dataset || (a->dataset == dataset && a->index < index);
}

int stats_would_list(const run_stats_t *stats, int64_t dataset, int64_t index)
{
    return stats->nbad < BAD_LISTED || !before(&stats->bad[BAD_LISTED - 1], dataset, index);
}

void stats_list(run_stats_t *stats, const bad_matrix_t *bad)
{
    int at = stats->nbad;
    if (!stats_would_list(stats, bad->dataset, bad->index))
        return;
    if (at == BAD_LISTED)
        at--;
    else
        stats->nbad++;
    for (; at > 0 && !before(&stats->bad[at - 1], bad->dataset, bad->index); at--)
        stats->bad[at] = stats->bad[at - 1];
    stats->bad[at] = *bad;
}

void stats_join(run_stats_t *stats, const run_stats_t *part)
{
    for (int b = 0; b < GB10_BUCKETS; b++) {
        bucket_stats_t *to = &stats->bucket[b];
        const bucket_stats_t *from = &part->bucket[b];
        to->matrices += from->matrices;
        to->checked_full += from->checked_full;
        for (int i = 0; i < GB10_INFOS; i++)
            to->by_info[i] += from->by_info[i];
        for (int i = 0; i < GB10_METRICS; i++)
            to->worst[i] = fmax(to->worst[i], from->worst[i]);
    }
    for (int i = 0; i < part->nbad; i++)
        stats_list(stats, &part->bad[i]);
}

int64_t stats_bad(const run_stats_t *stats)
{
    int64_t bad = 0;
    for (int b = 0; b < GB10_BUCKETS; b++)
        for (int i = 0; i < GB10_INFOS; i++)
            if (i != GB10_INFO_OK && i != GB10_INFO_OK_ESCALATED)
                bad += stats->bucket[b].by_info[i];
    return bad;
}

/* The list travels with its length. */
typedef struct bad_list {
    int64_t n;
    bad_matrix_t bad[BAD_LISTED];
} bad_list_t;

static gb10_status_t merge_lists(run_stats_t *stats, const dist_team_t *team, gb10_error_t *err)
{
    bad_list_t mine = {.n = stats->nbad}, *all = NULL;
    int origin;
    gb10_status_t status = GB10_OK;
    memcpy(mine.bad, stats->bad, sizeof mine.bad);
    status =
        gb10_alloc(&all, team->rank == 0 ? (size_t)team->size : 1, sizeof *all, "bad list", err);
    GB10_TRY(dist_agree(team, status, err, &origin));
    GB10_TRY(dist_gather(team, &mine, sizeof mine, all, err));
    for (int r = 1; team->rank == 0 && r < team->size; r++)
        for (int64_t i = 0; i < all[r].n; i++)
            stats_list(stats, &all[r].bad[i]);
cleanup:
    gb10_free(all);
    return status;
}

gb10_status_t stats_reduce(run_stats_t *stats, const dist_team_t *team, int64_t *units_min,
                           int64_t *units_max, gb10_error_t *err)
{
    enum { PER_BUCKET = 2 + GB10_INFOS, TIMES = 2 * STAGES };
    int64_t counts[GB10_BUCKETS * PER_BUCKET + 4 + TIMES], *c = counts, low = stats->units;
    double worst[GB10_BUCKETS * GB10_METRICS + 1];
    gb10_status_t status = GB10_OK;
    for (int b = 0; b < GB10_BUCKETS; b++) {
        *c++ = stats->bucket[b].matrices;
        *c++ = stats->bucket[b].checked_full;
        for (int i = 0; i < GB10_INFOS; i++)
            *c++ = stats->bucket[b].by_info[i];
        memcpy(&worst[b * GB10_METRICS], stats->bucket[b].worst, sizeof stats->bucket[b].worst);
    }
    int64_t totals[4] = {stats->units, stats->matrices, stats->bytes_read, stats->bytes_written};
    memcpy(c, totals, sizeof totals);
    for (int s = 0; s < STAGES; s++) {
        c[4 + s] = (int64_t)(stats->busy[s] * 1e9);
        c[4 + STAGES + s] = (int64_t)(stats->wait[s] * 1e9);
    }
    worst[GB10_BUCKETS * GB10_METRICS] = (double)stats->units;
    GB10_TRY(dist_sum(team, counts, (int)(sizeof counts / sizeof *counts), err));
    GB10_TRY(dist_max(team, worst, (int)(sizeof worst / sizeof *worst), err));
    GB10_TRY(dist_min(team, &low, 1, err));
    GB10_TRY(merge_lists(stats, team, err));
    c = counts;
    for (int b = 0; b < GB10_BUCKETS; b++) {
        stats->bucket[b].matrices = *c++;
        stats->bucket[b].checked_full = *c++;
        for (int i = 0; i < GB10_INFOS; i++)
            stats->bucket[b].by_info[i] = *c++;
        memcpy(stats->bucket[b].worst, &worst[b * GB10_METRICS], sizeof stats->bucket[b].worst);
    }
    stats->units = c[0];
    stats->matrices = c[1];
    stats->bytes_read = c[2];
    stats->bytes_written = c[3];
    for (int s = 0; s < STAGES; s++) {
        stats->busy[s] = (double)c[4 + s] * 1e-9;
        stats->wait[s] = (double)c[4 + STAGES + s] * 1e-9;
    }
    if (units_min)
        *units_min = low;
    if (units_max)
        *units_max = (int64_t)worst[GB10_BUCKETS * GB10_METRICS];
cleanup:
    return status;
}
