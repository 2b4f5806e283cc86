/* Options and their environment, counters, and the list of lines with synchronisation. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/simt/simt_machine.h"

static const char *const schedule_names[SIMT_SCHEDULES] = {"forward", "reverse", "random",
                                                           "priority"};

const char *simt_schedule_name(simt_schedule_t schedule)
{
    return schedule < SIMT_SCHEDULES ? schedule_names[schedule] : "?";
}

simt_options_t simt_options_default(void)
{
    static char drop[512]; /* lives as long as the options that point to it */
    simt_options_t o = {.arch = 121, .schedule = SIMT_FORWARD, .seed = 1, .resident = 4};
    const char *text = getenv("SIMT_ARCH");
    if (text)
        o.arch = atoi(text);
    text = getenv("SIMT_SCHEDULE");
    for (int i = 0; text && i < SIMT_SCHEDULES; i++)
        if (strcmp(text, schedule_names[i]) == 0)
            o.schedule = (simt_schedule_t)i;
    text = getenv("SIMT_SEED");
    if (text)
        o.seed = strtoull(text, NULL, 10);
    text = getenv("SIMT_DROP");
    char *colon;
    if (text && (size_t)snprintf(drop, sizeof drop, "%s", text) < sizeof drop &&
        (colon = strrchr(drop, ':'))) {
        *colon = 0;
        o.drop_file = drop;
        o.drop_line = atoi(colon + 1);
    }
    return o;
}

void simt_set_options(const simt_options_t *options)
{
    simt_m.options = *options;
}

void simt_counters_reset(void)
{
    memset(&simt_m.count, 0, sizeof simt_m.count);
}

const simt_counters_t *simt_counters(void)
{
    return &simt_m.count;
}

/* ---- lines with synchronisation ---- */

enum { SITES = 4096 };
static simt_site_t sites[SITES];
static bool listing;

static void note_site(simt_site_t site)
{
    for (unsigned i = (unsigned)site.line % SITES, n = 0; n < SITES; n++, i = (i + 1) % SITES) {
        if (!sites[i].file) {
            sites[i] = site;
            return;
        }
        if (sites[i].line == site.line && strcmp(sites[i].file, site.file) == 0)
            return;
    }
}

static void write_sites(void)
{
    FILE *f = fopen(getenv("SIMT_SITES"), "a");
    if (!f)
        return;
    for (int i = 0; i < SITES; i++)
        if (sites[i].file)
            fprintf(f, "%s:%d\n", sites[i].file, sites[i].line);
    fclose(f);
}

void simt_list_sites(void)
{
    if (listing || !getenv("SIMT_SITES"))
        return;
    listing = true;
    atexit(write_sites);
}

bool simt_dropped(simt_site_t site)
{
    const simt_options_t *o = &simt_m.options;
    if (listing)
        note_site(site);
    if (!o->drop_file || o->drop_line != site.line)
        return false;
    size_t whole = strlen(site.file), part = strlen(o->drop_file);
    return whole >= part && strcmp(site.file + whole - part, o->drop_file) == 0;
}
