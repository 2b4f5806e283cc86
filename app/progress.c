#include <string.h>
#include <unistd.h>

#include "app/format.h"
#include "app/qr.h"

enum { AUTO, PLAIN, JSON, NONE, BAR_CELLS = 30 };

void progress_start(progress_t *p, const app_context_t *app, const qr_options_t *options,
                    int64_t matrices_total)
{
    *p = (progress_t){.app = app,
                      .kind = options->progress,
                      .interval = options->progress_interval,
                      .start = app_now(),
                      .matrices_total = matrices_total};
    if (app->level < APP_INFO || app->team.rank != 0)
        p->kind = NONE;
    p->terminal = p->kind == AUTO && isatty(STDERR_FILENO);
    if (p->terminal)
        p->interval = 0.2;
    p->last = p->start;
}

static void draw_bar(const dist_progress_t *sum, double share, double rate, double bytes,
                     double left)
{
    int full = (int)(share * BAR_CELLS);
    fprintf(stderr, "\r\033[Kfactoring ");
    for (int i = 0; i < BAR_CELLS; i++)
        fputs(i < full ? "━" : i == full ? "╸" : " ", stderr);
    fprintf(stderr, " %3.0f %%  %s matrices  %s/s  %s/s", 100 * share, format_count(sum->matrices),
            format_count((int64_t)rate), format_bytes(bytes));
    if (sum->bad > 0)
        fprintf(stderr, "  %s bad", format_count(sum->bad));
    fprintf(stderr, "  ETA %s", format_seconds(left));
    fflush(stderr);
}

void progress_tick(progress_t *p, const dist_progress_t *sum)
{
    double t = app_now(), elapsed = t - p->start;
    if (p->kind == NONE || t - p->last < p->interval || sum->units == 0)
        return;
    p->last = t;
    double share = (double)sum->units / (double)sum->units_total;
    double rate = (double)sum->matrices / elapsed, bytes = (double)sum->bytes / elapsed;
    double left = elapsed * (1 - share) / share;
    p->drawn |= p->terminal;
    if (p->terminal)
        draw_bar(sum, share, rate, bytes, left);
    else if (p->kind == JSON)
        fprintf(stderr,
                "{\"seconds\": %.3f, \"units\": %lld, \"units_total\": %lld, \"matrices\": %lld, "
                "\"matrices_total\": %lld, \"bad\": %lld, \"matrices_per_s\": %.1f, "
                "\"bytes_per_s\": %.1f, \"eta_s\": %.1f}\n",
                elapsed, (long long)sum->units, (long long)sum->units_total,
                (long long)sum->matrices, (long long)p->matrices_total, (long long)sum->bad, rate,
                bytes, left);
    else
        fprintf(stderr, "%s of %s units  %s matrices  %s/s  %s/s  %s bad  ETA %s\n",
                format_count(sum->units), format_count(sum->units_total),
                format_count(sum->matrices), format_count((int64_t)rate), format_bytes(bytes),
                format_count(sum->bad), format_seconds(left));
}

void progress_end(progress_t *p)
{
    if (p->drawn)
        fprintf(stderr, "\r\033[K");
    p->drawn = false;
}
