/* The subcommands; each cmd_<name>.c defines one. */
#ifndef APP_COMMANDS_H
#define APP_COMMANDS_H

#include "app/cli.h"

extern const cli_command_t cmd_qr, cmd_verify, cmd_info, cmd_gen, cmd_bench, cmd_csyrk, cmd_apply;

/* Runs `fugu argv[1] ...` and returns the exit code. */
int app_main(int argc, char **argv);

#endif
