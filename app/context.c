#include "app/context.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "kernels/core/alloc.h"

void app_context_init(app_context_t *app, const char *command, const app_common_t *common)
{
    static const char *const names[] = {"error", "warn", "info", "debug", "trace"};
    const char *wanted = getenv("FUGU_LOG");
    *app = (app_context_t){.command = command, .level = APP_INFO};
    app->team = (dist_team_t){.rank = dist_launch_rank(), .size = 1, .nodes = 1};
    int known = APP_TRACE;
    while (wanted && known >= 0 && strcmp(wanted, names[known]) != 0)
        known--;
    if (wanted && known >= 0)
        app->level = (app_level_t)known;
    if (!common)
        return;
    if (wanted && *wanted && known < 0)
        app_log(app, APP_WARN, "FUGU_LOG=%s is none of error, warn, info, debug, trace.", wanted);
    if (common->verbose)
        app->level = common->verbose > 1 ? APP_TRACE : APP_DEBUG;
    if (common->quiet)
        app->level = APP_WARN;
}

void app_log(const app_context_t *app, app_level_t level, const char *format, ...)
{
    if (app->team.rank != 0 || level > app->level)
        return;
    va_list args;
    if (level <= APP_WARN)
        fprintf(stderr, "fugu %s: ", app->command);
    va_start(args, format);
    vfprintf(stderr, format, args);
    va_end(args);
    fputc('\n', stderr);
}

int app_exit_code(gb10_status_t status)
{
    static const struct {
        gb10_status_t status;
        int code;
    } table[] = {
        {GB10_OK, EXIT_DONE},
        {GB10_ERR_USAGE, EXIT_USAGE},
        {GB10_ERR_MEMORY, EXIT_INPUT},
        {GB10_ERR_FILE, EXIT_INPUT},
        {GB10_ERR_SPACE, EXIT_INPUT},
        {GB10_ERR_EXISTS, EXIT_INPUT},
        {GB10_ERR_FORMAT, EXIT_INPUT},
        {GB10_ERR_UNSUPPORTED, EXIT_INPUT},
        {GB10_ERR_DEVICE, EXIT_INPUT},
        {GB10_ERR_MPI, EXIT_INPUT},
        {GB10_ERR_STOPPED, EXIT_STOPPED},
    };
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        if (table[i].status == status)
            return table[i].code;
    return EXIT_INTERNAL;
}

int app_fail(const app_context_t *app, const gb10_error_t *err)
{
    int code = app_exit_code(err->status);
    if (app->team.rank == 0) {
        fflush(stdout);
        fprintf(stderr, "fugu %s: %s\n", app->command, err->message);
        if (code == EXIT_INTERNAL)
            fprintf(stderr, "fugu %s: this is a bug in fugu (%s:%d)\n", app->command,
                    err->file ? err->file : "", err->line);
    }
    return code;
}

void app_die(const app_context_t *app, const gb10_error_t *err)
{
    fprintf(stderr, "fugu %s: rank %d: %s\n", app->command, app->team.rank, err->message);
    dist_abort(&app->team, app_exit_code(err->status));
}

gb10_status_t app_read_tuning(const char *path, void **text, size_t *size, gb10_error_t *err)
{
    enum { SIZE_LIMIT = 1 << 20 };
    FILE *file = fopen(path, "r");
    if (!file)
        return GB10_FAIL(err, GB10_ERR_FILE, "cannot read %s: %s", path, strerror(errno));
    gb10_status_t status = gb10_alloc(text, SIZE_LIMIT + 1, 1, path, err);
    if (status == GB10_OK) {
        *size = fread(*text, 1, SIZE_LIMIT + 1, file) + 1;
        if (ferror(file))
            status = GB10_FAIL(err, GB10_ERR_FILE, "cannot read %s: %s", path, strerror(errno));
        else if (*size > SIZE_LIMIT + 1)
            status = GB10_FAIL(err, GB10_ERR_FORMAT, "%s is no tuning table: more than %d bytes",
                               path, SIZE_LIMIT);
    }
    fclose(file);
    return status;
}

gb10_status_t app_set_tuning(gb10_handle_t *handle, const char *text, const char *path,
                             gb10_error_t *err)
{
    if (gb10_set_tuning(handle, text) == GB10_OK)
        return GB10_OK;
    *err = *gb10_last_error(handle);
    gb10_error_context(err, "%s", path);
    return err->status;
}

double app_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

const char *app_git(void)
{
    return FUGU_GIT;
}
