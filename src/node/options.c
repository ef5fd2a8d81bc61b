#include "node/options.h"

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "base/parse.h"
#include "node/metrics/metric.h"

#define SYSTEM_CONFIG "/etc/allot/allotd.conf"

enum {
	OPTION_RUN_DIR = 256,
	OPTION_FOREGROUND,
	OPTION_PRIVATE,
	OPTION_LINGER,
	OPTION_READY_FD,
	OPTION_SIM_SOCKET,
	OPTION_NVML,
	OPTION_POLICY,
	OPTION_CONFIG,
	OPTION_CHECK_CONFIG,
	OPTION_LIST_METRICS,
	OPTION_VERSION,
	OPTION_HELP,
};

static const struct {
	const char *name, *argument;
	int code;
	const char *help;
} rows[] = {
	{ "run-dir", "DIR", OPTION_RUN_DIR, "where sockets and state are" },
	{ "foreground", NULL, OPTION_FOREGROUND, "stay in the foreground (also with --ready-fd)" },
	{ "private", NULL, OPTION_PRIVATE, "for this user alone; ends when no tenants are left" },
	{ "linger", "TIME", OPTION_LINGER, "how long a private daemon stays without tenants" },
	{ "ready-fd", "N", OPTION_READY_FD, "write 'ready' to this descriptor once it answers" },
	{ "sim-socket", "PATH", OPTION_SIM_SOCKET, "use the simulated GPU behind this socket" },
	{ "nvml", "PATH", OPTION_NVML, "NVML's library, instead of the setting" },
	{ "policy", "NAME", OPTION_POLICY, "lease, feedback or token, instead of the setting" },
	{ "config", "FILE", OPTION_CONFIG, "settings; default " SYSTEM_CONFIG ", unless --private" },
	{ "check-config", "FILE", OPTION_CHECK_CONFIG, "check a file of settings and exit" },
	{ "list-metrics", NULL, OPTION_LIST_METRICS, "print a table of the metrics and exit" },
	{ "version", NULL, OPTION_VERSION, "print the version and exit" },
	{ "help", NULL, OPTION_HELP, "print this and exit" },
};
#define ROW_COUNT (sizeof(rows) / sizeof(rows[0]))

static void print_help(void)
{
	puts("usage: allotd [OPTION...]\n"
	     "Shares this machine's GPUs among tenants.\n");
	for (size_t i = 0; i < ROW_COUNT; i++) {
		char left[40];
		snprintf(left, sizeof(left), "--%s%s%s", rows[i].name, rows[i].argument ? " " : "",
			 rows[i].argument ? rows[i].argument : "");
		printf("  %-20s %s\n", left, rows[i].help);
	}
	puts("\nSettings ('key = value' lines), their defaults and meaning:");
	config_print_help(stdout);
}

static void complain(void *data, const char *text)
{
	fprintf(stderr, "allotd: %s\n", text);
}

static int check_config(const char *file)
{
	struct config config;
	struct error err = { 0 };
	config_default(&config);
	int r = config_load(&config, file, complain, NULL, &err);
	if (r < 0)
		complain(NULL, err.text);
	if (r == 0)
		printf("%s: good\n", file);
	return r == 0 ? 0 : 1;
}

/* A value of the command line goes before the file's: kept, and applied after it. */
struct overrides {
	const char *linger, *nvml, *policy;
};

static int apply_config(struct options *o, const struct overrides *overrides)
{
	struct error err = { 0 };
	const char *file = o->config_file;
	config_default(&o->config);
	if (!file && !o->is_private && access(SYSTEM_CONFIG, F_OK) == 0)
		file = SYSTEM_CONFIG;
	int r = file ? config_load(&o->config, file, complain, NULL, &err) : 0;
	if (r > 0)
		return 1;
	if (r >= 0 && overrides->linger)
		r = config_set(&o->config, "linger", overrides->linger, &err);
	if (r >= 0 && overrides->nvml)
		r = config_set(&o->config, "nvml", overrides->nvml, &err);
	if (r >= 0 && overrides->policy)
		r = config_set(&o->config, "policy", overrides->policy, &err);
	if (r < 0) {
		complain(NULL, err.text);
		return 1;
	}
	return -1;
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

static int take(int code, struct options *o, struct overrides *overrides)
{
	switch (code) {
	case OPTION_RUN_DIR: o->run_dir = optarg; return -1;
	case OPTION_FOREGROUND: o->foreground = true; return -1;
	case OPTION_PRIVATE: o->is_private = true; return -1;
	case OPTION_LINGER: overrides->linger = optarg; return -1;
	case OPTION_READY_FD: return parse_ready_fd(optarg, &o->ready_fd);
	case OPTION_SIM_SOCKET: o->sim_socket = optarg; return -1;
	case OPTION_NVML: overrides->nvml = optarg; return -1;
	case OPTION_POLICY: overrides->policy = optarg; return -1;
	case OPTION_CONFIG: o->config_file = optarg; return -1;
	case OPTION_CHECK_CONFIG: return check_config(optarg);
	case OPTION_LIST_METRICS: metrics_print_list(stdout); return 0;
	case OPTION_VERSION: puts("allotd " ALLOT_VERSION); return 0;
	case OPTION_HELP: print_help(); return 0;
	default: fputs("allotd: try 'allotd --help'\n", stderr); return 1;
	}
}

int options_parse(int argc, char **argv, struct options *options)
{
	struct option table[ROW_COUNT + 1] = { 0 };
	struct options o = { .ready_fd = -1 };
	struct overrides overrides = { 0 };
	int code, r;

	for (size_t i = 0; i < ROW_COUNT; i++)
		table[i] = (struct option){ rows[i].name,
					    rows[i].argument ? required_argument : no_argument,
					    NULL, rows[i].code };
	while ((code = getopt_long(argc, argv, "", table, NULL)) >= 0) {
		r = take(code, &o, &overrides);
		if (r >= 0)
			return r;
	}
	if (optind < argc) {
		fprintf(stderr, "allotd: '%s': no such argument; try 'allotd --help'\n",
			argv[optind]);
		return 1;
	}
	r = apply_config(&o, &overrides);
	if (r >= 0)
		return r;
	*options = o;
	return -1;
}
