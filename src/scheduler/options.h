/* allot-scheduler's command line: one table row an option; parsed, and then the configuration file applied. */
#ifndef ALLOT_SCHEDULER_OPTIONS_H
#define ALLOT_SCHEDULER_OPTIONS_H

#include "scheduler/service/config.h"

/*
 * Parses argv and the configuration file. Returns -1 to go on; else the exit status, when all is said or done (--help,
 * --check-config, --issue, errors).
 */
int options_parse(int argc, char **argv, struct config *config);

#endif
