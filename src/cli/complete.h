/* allot complete: what the shells' completion asks for; not in the list of commands, since nobody writes it. */
#ifndef ALLOT_CLI_COMPLETE_H
#define ALLOT_CLI_COMPLETE_H

#include "cli/command.h"

/*
 * argv[0..argc): as completion_find() has them. Prints a line "WORD\tHELP" for each word that fits, or
 * ":file", ":directory", ":command I" for what the shell itself completes. Returns 0.
 */
int complete_run(const struct command *const *commands, int argc, char **argv);

#endif
