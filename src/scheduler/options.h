/* allot-scheduler's command line: one table row an option; parsed, and then the configuration file applied. */
#pragma once

#include "scheduler/service/config.h"

/*
 * Parses argv and the configuration file. Returns -1 to go on; else the exit status, when all is said or done (--help,
 * --check-config, --issue, errors).
 */
int options_parse(int argc, char **argv, struct config *config);
