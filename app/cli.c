#include "app/cli.h"

#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/core/alloc.h"

enum { OPTIONS_MAX = 64, HELP_INDENT = 26, HELP_WIDTH = 79, LONG_BASE = 256 };

const char *cli_choice(const char *choices, int at, char *text)
{
    for (; at > 0 && choices; at--)
        choices = strchr(choices, '|') ? strchr(choices, '|') + 1 : NULL;
    size_t length = choices ? strcspn(choices, "|") : 0;
    snprintf(text, 32, "%.*s", (int)length, choices ? choices : "");
    return text;
}

/* Index of a word of `length` characters in "a|b|c", or -1. */
static int choice_index(const char *choices, const char *word, size_t length)
{
    for (int at = 0; choices; at++) {
        size_t n = strcspn(choices, "|");
        if (n == length && strncmp(choices, word, n) == 0)
            return at;
        choices = choices[n] ? choices + n + 1 : NULL;
    }
    return -1;
}

static gb10_status_t parse_number(const cli_option_t *o, const char *text, double *value,
                                  gb10_error_t *err)
{
    char *end = NULL;
    errno = 0;
    *value = strtod(text, &end);
    if (o->type == CLI_SIZE && end != text && *end) {
        static const char suffix[] = "KMGT";
        const char *s = strchr(suffix, *end >= 'a' ? *end - 32 : *end);
        if (s) {
            *value *= ldexp(1.0, 10 * (int)(s - suffix + 1));
            end++;
        }
    }
    if (end == text || *end || errno == ERANGE || isnan(*value))
        return GB10_FAIL(err, GB10_ERR_USAGE, "--%s: '%s' is not a %s", o->name, text,
                         o->type == CLI_SIZE ? "size such as 64M" : "number");
    if (o->type != CLI_REAL && *value != floor(*value))
        return GB10_FAIL(err, GB10_ERR_USAGE, "--%s: '%s' is not a whole number", o->name, text);
    if (!(*value >= o->min && *value <= o->max))
        return GB10_FAIL(err, GB10_ERR_USAGE, "--%s: %s is outside %.15g .. %.15g", o->name, text,
                         o->min, o->max);
    return GB10_OK;
}

static gb10_status_t parse_set(const cli_option_t *o, const char *text, uint32_t *bits,
                               gb10_error_t *err)
{
    *bits = 0;
    for (const char *at = text;; at++) {
        size_t length = strcspn(at, ",");
        int index = choice_index(o->choices, at, length);
        if (index < 0)
            return GB10_FAIL(err, GB10_ERR_USAGE, "--%s: '%.*s' is none of %s", o->name,
                             (int)length, at, o->choices);
        *bits |= 1u << index;
        at += length;
        if (!*at)
            return GB10_OK;
    }
}

/* Stores one value; `text` is NULL for options without one. */
static gb10_status_t store(const cli_option_t *o, void *options, const char *text,
                           gb10_error_t *err)
{
    void *target = (char *)options + o->target;
    double number = 0;
    int index;
    cli_list_t *list = target;
    gb10_status_t status = GB10_OK;
    switch (o->type) {
    case CLI_FLAG:
        *(bool *)target = true;
        break;
    case CLI_COUNT:
        ++*(int *)target;
        break;
    case CLI_INT:
    case CLI_SIZE:
        number = index = choice_index(o->choices, text, strlen(text));
        if (index < 0)
            status = parse_number(o, text, &number, err);
        *(int64_t *)target = (int64_t)number;
        break;
    case CLI_REAL:
        status = parse_number(o, text, (double *)target, err);
        break;
    case CLI_TEXT:
        *(const char **)target = text;
        break;
    case CLI_LIST:
        if (list->n == CLI_LIST_MAX)
            return GB10_FAIL(err, GB10_ERR_USAGE, "--%s: more than %d times", o->name,
                             CLI_LIST_MAX);
        list->item[list->n++] = text;
        break;
    case CLI_CHOICE:
        index = choice_index(o->choices, text, strlen(text));
        if (index < 0)
            return GB10_FAIL(err, GB10_ERR_USAGE, "--%s: '%s' is none of %s", o->name, text,
                             o->choices);
        *(int *)target = index;
        break;
    case CLI_SET:
        status = parse_set(o, text, target, err);
        break;
    }
    return status;
}

static bool takes_value(const cli_option_t *o)
{
    return o->type != CLI_FLAG && o->type != CLI_COUNT;
}

/* getopt_long's tables from ours. Returns the number of options. */
static int getopt_tables(const cli_option_t *options, struct option *longs, char *shorts)
{
    int n = 0;
    *shorts++ = ':'; /* report a missing value apart from an unknown option */
    for (; options[n].group; n++) {
        const cli_option_t *o = &options[n];
        int has = takes_value(o) ? required_argument : no_argument;
        longs[n] = (struct option){o->name, has, NULL, LONG_BASE + n};
        if (o->letter) {
            *shorts++ = o->letter;
            if (takes_value(o))
                *shorts++ = ':';
        }
    }
    longs[n] = (struct option){"help", no_argument, NULL, 'h'};
    longs[n + 1] = (struct option){"print-config", no_argument, NULL, LONG_BASE + n};
    *shorts++ = 'h';
    *shorts = 0;
    return n;
}

static gb10_status_t unknown_option(const cli_command_t *c, char **argv, gb10_error_t *err)
{
    char letter[3] = {'-', (char)optopt, 0};
    bool is_letter = optopt > 0 && optopt < LONG_BASE;
    return GB10_FAIL(err, GB10_ERR_USAGE, "unknown option %s; try fugu %s --help",
                     is_letter ? letter : argv[optind - 1], c->name);
}

gb10_status_t cli_parse(const cli_command_t *c, int argc, char **argv, void *options, char **args,
                        int *nargs, cli_request_t *request, gb10_error_t *err)
{
    struct option longs[OPTIONS_MAX + 2] = {{0}};
    char shorts[3 * OPTIONS_MAX];
    int n = getopt_tables(c->options, longs, shorts), found;
    gb10_status_t status = GB10_OK;
    *request = CLI_RUN;
    *nargs = 0;
    for (int i = 0; i < n && status == GB10_OK; i++)
        if (c->options[i].fallback)
            status = store(&c->options[i], options, c->options[i].fallback, err);
    optind = 1;
    opterr = 0;
    while (status == GB10_OK && (found = getopt_long(argc, argv, shorts, longs, NULL)) != -1) {
        int at = found - LONG_BASE;
        for (int i = 0; found < LONG_BASE && i < n; i++)
            if (c->options[i].letter == found)
                at = i;
        if (found == 'h')
            *request = CLI_HELP;
        else if (found == '?')
            status = unknown_option(c, argv, err);
        else if (found == ':')
            status = GB10_FAIL(err, GB10_ERR_USAGE, "%s needs a value; try fugu %s --help",
                               argv[optind - 1], c->name);
        else if (at == n)
            *request = CLI_PRINT_CONFIG;
        else
            status = store(&c->options[at], options, optarg, err);
        if (*request == CLI_HELP)
            return GB10_OK;
    }
    if (status != GB10_OK)
        return status;
    for (; optind < argc; optind++) {
        if (*nargs == c->max_args)
            return GB10_FAIL(err, GB10_ERR_USAGE, "unexpected argument '%s'; try fugu %s --help",
                             argv[optind], c->name);
        args[(*nargs)++] = argv[optind];
    }
    if (*nargs < c->min_args && *request == CLI_RUN)
        return GB10_FAIL(err, GB10_ERR_USAGE,
                         "%d file name%s missing (fugu %s %s); try fugu %s --help",
                         c->min_args - *nargs, c->min_args - *nargs > 1 ? "s are" : " is", c->name,
                         c->usage, c->name);
    return GB10_OK;
}

/* Prints words wrapped at HELP_WIDTH, later lines indented; `column` is where the first starts. */
static void print_wrapped(const char *text, int column)
{
    const char *gap = "";
    while (*text) {
        int length = (int)strcspn(text, " ");
        if (column + (int)strlen(gap) + length > HELP_WIDTH) {
            printf("\n%*s", HELP_INDENT, "");
            column = HELP_INDENT;
            gap = "";
        }
        column += printf("%s%.*s", gap, length, text);
        text += length;
        text += *text == ' ';
        gap = " ";
    }
    putchar('\n');
}

static void print_option(const cli_option_t *o)
{
    char left[80], right[512], letter[8] = "    ";
    if (o->letter)
        snprintf(letter, sizeof letter, "-%c, ", o->letter);
    snprintf(left, sizeof left, "  %s--%s%s%s", letter, o->name, takes_value(o) ? " " : "",
             takes_value(o) ? o->value : "");
    const char *words = o->type == CLI_INT ? NULL : o->choices;
    snprintf(right, sizeof right, "%s%s%s%s%s%s", o->help, words ? ": " : "", words ? words : "",
             o->fallback ? " (default " : "", o->fallback ? o->fallback : "",
             o->fallback ? ")" : "");
    int width = printf("%s", left);
    if (width >= HELP_INDENT - 1) {
        putchar('\n');
        width = 0;
    }
    printf("%*s", HELP_INDENT - width, "");
    print_wrapped(right, HELP_INDENT);
}

void cli_print_help(const cli_command_t *c)
{
    const char *group = "";
    printf("usage: fugu %s %s\n\n%s\n", c->name, c->usage, c->summary);
    for (const cli_option_t *o = c->options; o->group; o++) {
        if (strcmp(group, o->group) != 0)
            printf("\n%s\n", o->group);
        group = o->group;
        print_option(o);
    }
    printf("\n      --print-config      print the options as they would be used, then stop\n"
           "  -h, --help              this text\n\nexamples\n%s",
           c->examples);
}

static void print_set(const cli_option_t *o, uint32_t bits)
{
    char word[32];
    const char *comma = "";
    for (int i = 0; i < 32; i++)
        if (bits >> i & 1u) {
            printf("%s%s", comma, cli_choice(o->choices, i, word));
            comma = ",";
        }
}

void cli_print_config(const cli_command_t *c, const void *options)
{
    char word[32];
    for (const cli_option_t *o = c->options; o->group; o++) {
        const void *target = (const char *)options + o->target;
        const cli_list_t *list = target;
        printf("%s = ", o->name);
        switch (o->type) {
        case CLI_FLAG:
            printf("%s", *(const bool *)target ? "true" : "false");
            break;
        case CLI_COUNT:
            printf("%d", *(const int *)target);
            break;
        case CLI_INT:
        case CLI_SIZE:
            printf("%lld", (long long)*(const int64_t *)target);
            break;
        case CLI_REAL:
            printf("%.17g", *(const double *)target);
            break;
        case CLI_TEXT:
            printf("%s", *(const char *const *)target ? *(const char *const *)target : "");
            break;
        case CLI_LIST:
            for (int i = 0; i < list->n; i++)
                printf("%s%s", i ? " " : "", list->item[i]);
            break;
        case CLI_CHOICE:
            printf("%s", cli_choice(o->choices, *(const int *)target, word));
            break;
        case CLI_SET:
            print_set(o, *(const uint32_t *)target);
            break;
        }
        putchar('\n');
    }
}
