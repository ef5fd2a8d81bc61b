#include "daemon/options.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/settings/command_line.h"
#include "base/parse.h"
#include "daemon/export/metrics/metric.h"

#define SYSTEM_CONFIG "/etc/allot/allotd.conf"

enum {
	OPTION_RUN_DIR,
	OPTION_FOREGROUND,
	OPTION_PRIVATE,
	OPTION_READY_FD,
	OPTION_SIM_SOCKET,
	OPTION_CONFIG,
	OPTION_CHECK_CONFIG,
	OPTION_LIST_METRICS,
	OPTION_TUNING,
	OPTION_LIST_TUNING,
	OPTION_VERSION,
	OPTION_HELP,
	OPTIONS,
};

static const struct command_option rows[OPTIONS] = {
	[OPTION_RUN_DIR] = { "run-dir", "DIR",
			     "directory of sockets and state; default /run/allot/gpu" },
	[OPTION_FOREGROUND] = { "foreground", NULL,
				"stay in the foreground and log to standard error" },
	[OPTION_PRIVATE] = { "private", NULL, "serve only this user, and end after the last tenant" },
	[OPTION_READY_FD] = { "ready-fd", "N",
			      "write 'ready' to this file descriptor once allotd serves requests, and "
			      "stay in the foreground" },
	[OPTION_SIM_SOCKET] = { "sim-socket", "PATH",
				"use the simulated GPU of the allot-sim server at this socket" },
	[OPTION_CONFIG] = { "config", "FILE",
			    "file of settings; default " SYSTEM_CONFIG
			    " if it exists, with --private none" },
	[OPTION_CHECK_CONFIG] = { "check-config", "FILE",
				  "check a file of settings, print its errors, and exit" },
	[OPTION_LIST_METRICS] = { "list-metrics", NULL,
				  "print the metrics that allotd exports, and exit" },
	[OPTION_TUNING] = { "tuning", "FILE",
			    "for developers: file of timings and gains, which any version may change" },
	[OPTION_LIST_TUNING] = { "list-tuning", NULL,
				 "print the timings and gains that --tuning can set, and exit" },
	[OPTION_VERSION] = { "version", NULL, "print the version and exit" },
	[OPTION_HELP] = { "help", NULL, "print this help and exit" },
};

static int take(void *data, unsigned option, const char *value);

static const struct command_line command_line = {
	.program = "allotd",
	.option = rows,
	.option_count = OPTIONS,
	.table = &config_settings,
	.former = &config_tuning,
	.take = take,
};

static void print_help(void)
{
	struct config defaults;
	config_default(&defaults);
	puts("usage: allotd [OPTION...]\n"
	     "Shares this machine's GPUs among tenants: commands run by allot run, and containers.\n");
	command_line_print_help(&command_line, &defaults);
	puts("\nNames of gpu-manager's and HAMi's settings that are also understood, and what each sets:");
	settings_print_aliases(&config_settings, stdout);
}

static void list_tuning(void)
{
	struct config defaults;
	config_default(&defaults);
	settings_print_help(&config_tuning, &defaults, stdout);
}

static int check_config(const char *file)
{
	struct config config;
	config_default(&config);
	return command_line_check_file(&command_line, file, &config);
}

static int load_tuning(const char *file, struct config *config)
{
	struct error err = { 0 };
	int bad = settings_load(&config_tuning, config, file, command_line_complain,
				(void *)command_line.program, &err);
	if (bad < 0)
		command_line_complain((void *)command_line.program, err.text);
	return bad || settings_check_all(&config_tuning, config, file, command_line_complain,
					 (void *)command_line.program)
		       ? 1
		       : -1;
}

static int parse_ready_fd(const char *text, int *ret)
{
	struct error err = { 0 };
	int64_t fd;
	if (parse_int(text, 0, 1 << 20, &fd, &err) < 0) {
		fprintf(stderr, "allotd: --ready-fd: %s\n", err.text);
		return 1;
	}
	if (fcntl((int)fd, F_SETFD, FD_CLOEXEC) < 0) {
		fprintf(stderr, "allotd: --ready-fd %s: %s\n", text, strerror(errno));
		return 1;
	}
	*ret = (int)fd;
	return -1;
}

static int take(void *data, unsigned option, const char *value)
{
	struct options *o = data;
	switch (option) {
	case OPTION_RUN_DIR: o->run_dir = value; return -1;
	case OPTION_FOREGROUND: o->foreground = true; return -1;
	case OPTION_PRIVATE: o->is_private = true; return -1;
	case OPTION_READY_FD: return parse_ready_fd(value, &o->ready_fd);
	case OPTION_SIM_SOCKET: o->sim_socket = value; return -1;
	case OPTION_CONFIG: o->config_file = value; return -1;
	case OPTION_CHECK_CONFIG: return check_config(value);
	case OPTION_LIST_METRICS: metrics_print_list(stdout); return 0;
	case OPTION_TUNING: o->tuning_file = value; return -1;
	case OPTION_LIST_TUNING: list_tuning(); return 0;
	case OPTION_VERSION: puts("allotd " ALLOT_VERSION); return 0;
	default: print_help(); return 0;
	}
}

int options_parse(int argc, char **argv, struct options *options)
{
	struct options o = { .ready_fd = -1 };
	struct command_settings settings;
	int r = command_line_read(&command_line, argc, argv, &o, &settings);
	if (!o.config_file && !o.is_private && access(SYSTEM_CONFIG, F_OK) == 0)
		o.config_file = SYSTEM_CONFIG;
	config_default(&o.config);
	if (r < 0 && o.tuning_file)
		r = load_tuning(o.tuning_file, &o.config);
	if (r < 0)
		r = command_line_configure(&command_line, &settings, o.config_file, &o.config);
	free(settings.item);
	if (r < 0)
		*options = o;
	return r;
}
