/* Finds the command, parses its line and runs it. */
#include <errno.h>
#include <locale.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "app/commands.h"
#include "app/context.h"
#include "io/io.h"
#include "kernels/core/alloc.h"
#include "kernels/gb10.h"

enum { ARGS_MAX = 16 };

static const cli_command_t *const commands[] = {&cmd_qr,    &cmd_verify, &cmd_info, &cmd_gen,
                                                &cmd_bench, &cmd_apply,  &cmd_csyrk};
enum { COMMANDS = sizeof commands / sizeof *commands };

static void print_usage(FILE *file)
{
    fprintf(file, "usage: fugu <command> [options], alone or under mpirun\n\n"
                  "QR factorisation of every dense matrix in an HDF5 file.\n\ncommands\n");
    for (int i = 0; i < COMMANDS; i++)
        fprintf(file, "  %-8s %s\n", commands[i]->name, commands[i]->summary);
    fprintf(file, "\nfugu <command> --help explains one; fugu --version says what was built in.\n"
                  "\nexamples\n"
                  "  fugu qr in.h5 -o out.h5\n"
                  "  mpirun -n 4 fugu qr in.h5 -o out.h5 --check full\n");
}

static void print_version(void)
{
    const char *reason = NULL, *name;
    printf("fugu %s (%s)\n", FUGU_VERSION, app_git());
    for (int i = 0; (name = gb10_backend_list(i, &reason)); i++)
        printf("backend %-8s %s\n", name, reason ? reason : "usable");
    printf("HDF5 %s\n", io_library_version());
    printf("ScaLAPACK %s\n", dist_scalapack_reason() ? dist_scalapack_reason() : "built in");
}

/* Results that could not be written are not delivered, whatever else went well. */
static int flush_results(const app_context_t *app, int code)
{
    gb10_error_t err = {0};
    if (fflush(stdout) == 0 && !ferror(stdout))
        return code;
    GB10_FAIL(&err, GB10_ERR_FILE, "cannot write to standard output: %s.", strerror(errno));
    int failed = app_fail(app, &err);
    return code == EXIT_DONE || code == EXIT_BAD_MATRIX ? failed : code;
}

static int run_command(const cli_command_t *command, int argc, char **argv)
{
    app_context_t app;
    cli_request_t request = CLI_RUN;
    gb10_error_t err = {0};
    char *args[ARGS_MAX];
    void *options = NULL;
    int nargs = 0, code = EXIT_DONE;
    app_context_init(&app, command->name, NULL);
    if (gb10_alloc(&options, 1, command->options_size, "options", &err) != GB10_OK ||
        cli_parse(command, argc, argv, options, args, &nargs, &request, &err) != GB10_OK)
        code = app_fail(&app, &err);
    else if (request == CLI_RUN)
        code = command->run(command, options, args, nargs);
    else if (app.team.rank == 0 && request == CLI_HELP)
        cli_print_help(command);
    else if (app.team.rank == 0)
        cli_print_config(command, options);
    gb10_free(options);
    return flush_results(&app, code);
}

int app_main(int argc, char **argv)
{
    const char *word = argc > 1 ? argv[1] : "--help";
    bool speaks = dist_launch_rank() == 0;
    setlocale(LC_CTYPE, "");
    signal(SIGXFSZ, SIG_IGN); /* a file size limit is reported as a failed write */
    for (int i = 0; i < COMMANDS; i++)
        if (strcmp(word, commands[i]->name) == 0)
            return run_command(commands[i], argc - 1, argv + 1);
    if (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0 || strcmp(word, "help") == 0) {
        for (int i = 0; argc > 2 && i < COMMANDS; i++)
            if (strcmp(argv[2], commands[i]->name) == 0)
                return run_command(commands[i], 2, (char *[]){argv[2], (char *)"--help", NULL});
        if (speaks)
            print_usage(stdout);
        return EXIT_DONE;
    }
    if (strcmp(word, "--version") == 0 || strcmp(word, "-V") == 0) {
        if (speaks)
            print_version();
        return EXIT_DONE;
    }
    if (speaks)
        fprintf(stderr, "fugu: unknown command '%s'; try fugu --help\n", word);
    return EXIT_USAGE;
}
