/* The command line of allot-scheduler: a table row per option. Parses it, then reads the configuration file. */
#pragma once

#include "scheduler/service/config.h"

/*
 * Returns -1 if the program should start. Otherwise the exit status: all is done (--help, --check-config, --issue), or an error
 * was printed.
 */
int options_parse(int argc, char **argv, struct config *config);
