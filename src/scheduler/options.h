/* The command line of allot-scheduler: a table row per option. Parses it, then reads the configuration file. */
#pragma once

#include "scheduler/service/config.h"

/* Returns -1 if the program should start, else the exit status after an error or an option such as --help. */
int options_parse(int argc, char **argv, struct config *config);
