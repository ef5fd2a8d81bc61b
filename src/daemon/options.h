/* allotd's command line. Parses it, and then the files of settings and of tuning. */
#pragma once

#include <stdbool.h>

#include "daemon/config/config.h"

struct options {
	const char *run_dir;
	const char *sim_socket;
	const char *config_file; /* of --config, or the default one; NULL: there is none */
	const char *tuning_file; /* NULL: default tuning */
	bool foreground, is_private;
	int ready_fd;
	struct config config;
};

/*
 * Parses argv and the files. Returns -1 if the daemon is to start. Otherwise everything was printed (--help, --version,
 * --check-config, --list-metrics, --list-tuning, errors), and the result is the exit status.
 */
int options_parse(int argc, char **argv, struct options *options);
