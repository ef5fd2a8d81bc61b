/*
 * allotd's command line, with one table row per option. Parses it, and then the file of settings
 * and the file of tuning.
 */
#pragma once

#include <stdbool.h>

#include "daemon/config/config.h"

struct options {
	const char *run_dir; /* NULL: the default */
	const char *sim_socket;
	const char *config_file;
	const char *tuning_file; /* NULL: all tuning at its default */
	bool foreground, is_private;
	int ready_fd; /* -1: none */
	struct config config;
};

/*
 * Parses argv and the files of settings and tuning. Returns -1 if the daemon is to start. Otherwise
 * all output was printed (--help, --version, --check-config, --list-tuning, errors), and the result
 * is the exit status.
 */
int options_parse(int argc, char **argv, struct options *options);
