/* Command lines from tables: one row per option gives parsing, --help and --print-config. */
#ifndef APP_CLI_H
#define APP_CLI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kernels/core/status.h"

/* Type of the target an option writes to. */
typedef enum cli_type {
    CLI_FLAG,   /* bool, no value                                       */
    CLI_COUNT,  /* int, no value, may be given several times            */
    CLI_INT,    /* int64_t within [min, max], or a word of `choices`    */
    CLI_SIZE,   /* int64_t bytes, suffixes K, M, G (powers of 1024)     */
    CLI_REAL,   /* double within [min, max]                             */
    CLI_TEXT,   /* const char *                                         */
    CLI_LIST,   /* cli_list_t, may be given several times               */
    CLI_CHOICE, /* int: index into the words of `choices`               */
    CLI_SET     /* uint32_t: bits of the words of `choices`, by commas  */
} cli_type_t;

enum { CLI_LIST_MAX = 256 };
typedef struct cli_list {
    const char *item[CLI_LIST_MAX];
    int n;
} cli_list_t;

typedef struct cli_option {
    const char *group; /* heading in --help; NULL ends the table      */
    const char *name;
    char letter; /* 0: none                                         */
    cli_type_t type;
    size_t target;        /* offset in the command's option struct       */
    const char *value;    /* name of the value in --help                 */
    const char *fallback; /* default as one would type it, or NULL       */
    const char *choices;  /* words separated by '|' (CHOICE, SET); INT: the words for 0, 1, ... */
    const char *help;
    double min, max;
} cli_option_t;

typedef struct cli_command {
    const char *name, *summary, *usage;
    int min_args, max_args; /* positional arguments */
    const cli_option_t *options;
    size_t options_size;
    const char *examples;
    int (*run)(const struct cli_command *command, void *options, char **args, int nargs);
} cli_command_t;

/* What a parsed command line asks for. */
typedef enum cli_request { CLI_RUN, CLI_HELP, CLI_PRINT_CONFIG } cli_request_t;

/* Parses argv[1..] of a command into its option struct (defaults first). args receives the
 * positional arguments (argv entries), *nargs their number. GB10_ERR_USAGE with the message. */
gb10_status_t cli_parse(const cli_command_t *command, int argc, char **argv, void *options,
                        char **args, int *nargs, cli_request_t *request, gb10_error_t *err);

/* Help and configuration to stdout. */
void cli_print_help(const cli_command_t *command);
void cli_print_config(const cli_command_t *command, const void *options);

/* The word with index `at` in "a|b|c"; text has room for 32 bytes. */
const char *cli_choice(const char *choices, int at, char *text);

#endif
