/* The command line of allot-scheduler: one table row per option. Parses the options, then applies the configuration file. */
#pragma once

#include "scheduler/service/config.h"

/*
 * Parses argv and the configuration file. Returns -1 if the program should start. Otherwise returns the exit status, because
 * everything is done (--help, --check-config, --issue) or an error was printed.
 */
int options_parse(int argc, char **argv, struct config *config);
