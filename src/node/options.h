/* allotd's command line: one table row an option; parsed, and then the configuration file applied. */
#ifndef ALLOT_NODE_OPTIONS_H
#define ALLOT_NODE_OPTIONS_H

#include <stdbool.h>

#include "node/config.h"

struct options {
	const char *run_dir; /* NULL: the default */
	const char *sim_socket;
	const char *config_file;
	bool foreground, is_private;
	int ready_fd; /* -1: none */
	struct config config;
};

/*
 * Parses argv and the configuration file. Returns -1 to go on; else the exit status, when all is said
 * (--help, --version, --check-config, errors).
 */
int options_parse(int argc, char **argv, struct options *options);

#endif
