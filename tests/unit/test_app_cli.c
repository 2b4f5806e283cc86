/* Option tables: parsing, defaults, and what is refused. */
#include "tests/support/test.h"

#include <string.h>

#include "app/cli.h"
#include "app/stop.h"
#include "app/format.h"

typedef struct options {
    bool flag;
    int count, choice;
    int64_t number, size;
    double real;
    const char *text;
    cli_list_t list;
    uint32_t set;
} options_t;

#define AT(field) offsetof(options_t, field)
static const cli_option_t table[] = {
    {"g", "flag", 'f', CLI_FLAG, AT(flag), NULL, NULL, NULL, "", 0, 0},
    {"g", "count", 'c', CLI_COUNT, AT(count), NULL, NULL, NULL, "", 0, 0},
    {"g", "choice", 0, CLI_CHOICE, AT(choice), "X", "beta", "alpha|beta|beta-2", "", 0, 0},
    {"g", "number", 'n', CLI_INT, AT(number), "N", "32", "auto", "", 1, 100},
    {"g", "size", 0, CLI_SIZE, AT(size), "S", "64M", NULL, "", 1, 1e15},
    {"g", "real", 0, CLI_REAL, AT(real), "X", "0", NULL, "", 0, 1},
    {"g", "text", 't', CLI_TEXT, AT(text), "T", NULL, NULL, "", 0, 0},
    {"g", "list", 0, CLI_LIST, AT(list), "L", NULL, NULL, "", 0, 0},
    {"g", "set", 0, CLI_SET, AT(set), "S", "V,T", "V|T|R|tau", "", 0, 0},
    {NULL, NULL, 0, CLI_FLAG, 0, NULL, NULL, NULL, NULL, 0, 0}};
static const cli_command_t command = {.name = "cmd",
                                      .usage = "A [B]",
                                      .min_args = 1,
                                      .max_args = 2,
                                      .options = table,
                                      .options_size = sizeof(options_t)};

enum { WORDS = 32 };

/* Parses a line split at blanks. */
static gb10_status_t parse(const char *line, options_t *o, int *nargs, cli_request_t *request,
                           gb10_error_t *err)
{
    static char copy[512];
    char *argv[WORDS + 1] = {(char *)"cmd"}, *args[4];
    int argc = 1;
    snprintf(copy, sizeof copy, "%s", line);
    for (char *w = strtok(copy, " "); w && argc < WORDS; w = strtok(NULL, " "))
        argv[argc++] = w;
    memset(o, 0, sizeof *o);
    *err = (gb10_error_t){0};
    return cli_parse(&command, argc, argv, o, args, nargs, request, err);
}

Test(cli, fills_defaults_and_values)
{
    options_t o;
    gb10_error_t err;
    cli_request_t request;
    int nargs;
    cr_assert_eq(parse("in", &o, &nargs, &request, &err), GB10_OK, "%s", err.message);
    cr_assert(!o.flag && o.count == 0 && o.choice == 1 && o.number == 32 && o.size == 64 << 20);
    cr_assert(o.set == 3 && o.list.n == 0 && nargs == 1 && request == CLI_RUN);
    cr_assert_eq(parse("-fcc --choice beta-2 -n 7 in --size=2k --real 0.5 --list a --list b out "
                       "--set tau,R",
                       &o, &nargs, &request, &err),
                 GB10_OK, "%s", err.message);
    cr_assert(o.flag && o.count == 2 && o.choice == 2 && o.number == 7 && o.size == 2048);
    cr_assert(o.real == 0.5 && o.list.n == 2 && o.set == 12 && nargs == 2);
    cr_assert_eq(parse("--number auto in", &o, &nargs, &request, &err), GB10_OK, "%s", err.message);
    cr_assert_eq(o.number, 0);
    cr_assert_eq(parse("--help --nonsense", &o, &nargs, &request, &err), GB10_OK);
    cr_assert_eq(request, CLI_HELP);
}

Test(cli, refuses_what_is_wrong_by_name)
{
    static const struct {
        const char *line, *says;
    } cases[] = {
        {"in --bogus", "--bogus"},
        {"in -x", "-x"},
        {"in --number", "--number"},
        {"in --number automatic", "not a number"},
        {"in --number 0", "outside"},
        {"in --number 101", "outside"},
        {"in --number 1.5", "whole"},
        {"in --number 7x", "not a number"},
        {"in --size 3Q", "not a size"},
        {"in --real nan", "not a number"},
        {"in --choice gamma", "alpha|beta|beta-2"},
        {"in --choice bet", "alpha|beta"},
        {"in --set V,,T", "none of"},
        {"in --set W", "none of"},
        {"in --set V,", "none of"},
        {"a b c", "'c'"},
        {"", "missing"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        options_t o;
        gb10_error_t err;
        cli_request_t request;
        int nargs;
        cr_expect_eq(parse(cases[i].line, &o, &nargs, &request, &err), GB10_ERR_USAGE, "%s",
                     cases[i].line);
        cr_expect(strstr(err.message, cases[i].says) != NULL, "'%s' says: %s", cases[i].line,
                  err.message);
    }
}

Test(format, numbers_read_well)
{
    cr_expect_str_eq(format_count(0), "0");
    cr_expect_str_eq(format_count(999), "999");
    cr_expect_str_eq(format_count(61440), "61,440");
    cr_expect_str_eq(format_count(-1234567), "-1,234,567");
    cr_expect_str_eq(format_bytes(0), "0 B");
    cr_expect_str_eq(format_bytes(1930000000.0), "1.93 GB");
    cr_expect_str_eq(format_bytes(999600), "1.00 MB");
    cr_expect_str_eq(format_seconds(6.4), "6.40 s");
    cr_expect_str_eq(format_seconds(3723), "1:02:03");
}

Test(cli, durations)
{
    static const struct {
        const char *text;
        double seconds;
    } cases[] = {{"90", 90},    {"90s", 90},     {"1.5m", 90},      {"2h", 7200},
                 {"1d", 86400}, {"0", 0},        {"1:30:05", 5405}, {"", -1},
                 {"s", -1},     {"-3", -1},      {"3 s", -1},       {"3sec", -1},
                 {"1:2", -1},   {"1:2:3:4", -1}, {"inf", -1},       {"1:-2:03", -1}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        cr_expect_float_eq(stop_duration(cases[i].text), cases[i].seconds, 1e-9, "'%s': %g",
                           cases[i].text, stop_duration(cases[i].text));
}
