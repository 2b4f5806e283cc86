/* What a command knows about its surroundings, and how it speaks: results to stdout, messages to
 * stderr; info and above from rank 0 only, errors once. */
#ifndef APP_CONTEXT_H
#define APP_CONTEXT_H

#include "app/cli.h"
#include "kernels/core/status.h"
#include "kernels/gb10.h"
#include "mpi/dist.h"

#define FUGU_VERSION GB10_VERSION

enum {
    EXIT_DONE = 0,
    EXIT_BAD_MATRIX = 1,
    EXIT_USAGE = 2,
    EXIT_INPUT = 3,
    EXIT_INTERNAL = 70,
    EXIT_STOPPED = 75
};

typedef enum app_level { APP_ERROR, APP_WARN, APP_INFO, APP_DEBUG, APP_TRACE } app_level_t;

typedef struct app_context {
    const char *command; /* "qr"                   */
    dist_team_t team;
    app_level_t level;
} app_context_t;

/* Options that every command has. */
typedef struct app_common {
    int verbose;
    bool quiet;
} app_common_t;

#define APP_COMMON_OPTIONS(type)                                                                   \
    {"messages",                                                                                   \
     "verbose",                                                                                    \
     'v',                                                                                          \
     CLI_COUNT,                                                                                    \
     offsetof(type, common.verbose),                                                               \
     NULL,                                                                                         \
     NULL,                                                                                         \
     NULL,                                                                                         \
     "say more; twice: debug",                                                                     \
     0,                                                                                            \
     0},                                                                                           \
        {"messages",                                                                               \
         "quiet",                                                                                  \
         'q',                                                                                      \
         CLI_FLAG,                                                                                 \
         offsetof(type, common.quiet),                                                             \
         NULL,                                                                                     \
         NULL,                                                                                     \
         NULL,                                                                                     \
         "only warnings and errors",                                                               \
         0,                                                                                        \
         0},                                                                                       \
    {                                                                                              \
        NULL, NULL, 0, CLI_FLAG, 0, NULL, NULL, NULL, NULL, 0, 0                                   \
    }

/* Level from -v, -q, else FUGU_LOG, else info. common NULL: before the line is parsed. */
void app_context_init(app_context_t *app, const char *command, const app_common_t *common);

/* One line on stderr from rank 0 when the level is on. */
void app_log(const app_context_t *app, app_level_t level, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Exit code of a status, by one table. */
int app_exit_code(gb10_status_t status);

/* Prints "fugu COMMAND: message" (rank 0 only) and returns the exit code of the record. */
int app_fail(const app_context_t *app, const gb10_error_t *err);

/* Ends every rank of a run that cannot end by agreement; any rank may call it and is named. */
_Noreturn void app_die(const app_context_t *app, const gb10_error_t *err);

/* The text of a tuning table, with a final zero that *size counts. GB10_ERR_FILE, or
 * GB10_ERR_FORMAT for more than a megabyte. Release *text with gb10_free. */
gb10_status_t app_read_tuning(const char *path, void **text, size_t *size, gb10_error_t *err);

/* gb10_set_tuning; the message of a failure names the file that the text is from. */
gb10_status_t app_set_tuning(gb10_handle_t *handle, const char *text, const char *path,
                             gb10_error_t *err);

/* Seconds of a clock that only goes forward. */
double app_now(void);

/* Git description the program was built from. */
const char *app_git(void);

#endif
