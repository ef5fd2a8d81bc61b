/* The command line of allot-scheduler: a table row per option. Parses it, then reads the configuration file. */
#pragma once

#include "scheduler/service/config.h"

/*
 * Returns -1 if the program should start. Otherwise returns the exit status: an error was printed, or an option has done its
 * work (--help, --check-config, --issue).
 */
int options_parse(int argc, char **argv, struct config *config);
