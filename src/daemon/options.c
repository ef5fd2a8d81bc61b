#include "daemon/options.h"

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "base/parse.h"
#include "daemon/config/config_foreign.h"
#include "daemon/export/metrics/metric.h"

#define SYSTEM_CONFIG "/etc/allot/allotd.conf"
#define OPTION_MAX 48

enum {
	OPTION_RUN_DIR = 256,
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
	OPTION_SETTING, /* and those behind it: in the order of all_names() */
};

static const struct {
	const char *name, *argument;
	int code;
	const char *help;
} rows[] = {
	{ "run-dir", "DIR", OPTION_RUN_DIR, "where sockets and state are" },
	{ "foreground", NULL, OPTION_FOREGROUND, "stay in the foreground (also with --ready-fd)" },
	{ "private", NULL, OPTION_PRIVATE, "for this user alone; ends when no tenants are left" },
	{ "ready-fd", "N", OPTION_READY_FD, "write 'ready' to this descriptor once it answers" },
	{ "sim-socket", "PATH", OPTION_SIM_SOCKET, "use the simulated GPU behind this socket" },
	{ "config", "FILE", OPTION_CONFIG, "settings; default " SYSTEM_CONFIG ", unless --private" },
	{ "check-config", "FILE", OPTION_CHECK_CONFIG, "check a file of settings and exit" },
	{ "list-metrics", NULL, OPTION_LIST_METRICS, "print a table of the metrics and exit" },
	{ "tuning", "FILE", OPTION_TUNING, "for developers: timings and gains that are no settings" },
	{ "list-tuning", NULL, OPTION_LIST_TUNING, "print a table of these and exit" },
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
	puts("\nSettings, their defaults and meaning; 'key = value' in a file, or --key VALUE, "
	     "which goes before it:");
	config_print_help(CONFIG_SETTINGS, stdout);
	puts("\nNames that gpu-manager and HAMi have for some, or for what is not set here:");
	config_foreign_print_help(stdout);
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
	int r = config_load(CONFIG_SETTINGS, &config, file, complain, NULL, &err);
	if (r < 0)
		complain(NULL, err.text);
	if (r == 0)
		printf("%s: good\n", file);
	return r == 0 ? 0 : 1;
}

static unsigned count_names(enum config_table table)
{
	unsigned n = 0;
	while (config_name(table, n))
		n++;
	return n;
}

/*
 * A name of the n-th option that is a setting: ours, then tuning, which was a setting once and whose error says so,
 * then other programs'. NULL behind the last.
 */
static const char *setting_name(unsigned n)
{
	unsigned settings = count_names(CONFIG_SETTINGS), tuning = count_names(CONFIG_TUNING);
	if (n < settings)
		return config_name(CONFIG_SETTINGS, n);
	n -= settings;
	return n < tuning ? config_name(CONFIG_TUNING, n) : config_foreign_name(n - tuning);
}

/* Options are written with '-'; '_' is taken as well. */
static void write_option(const char *setting, char with, char ret[OPTION_MAX])
{
	snprintf(ret, OPTION_MAX, "%s", setting);
	for (char *c = ret; *c; c++)
		if (*c == '_')
			*c = with;
}

/* A setting of the command line goes before the file's: kept, and set after it. */
struct overrides {
	unsigned count;
	struct override {
		unsigned setting;
		const char *value;
	} * item; /* as many as there are words */
};

static int set_all(struct config *config, const struct overrides *overrides, struct error *err)
{
	for (unsigned i = 0; i < overrides->count; i++) {
		const struct override *o = &overrides->item[i];
		int r = config_set(config, setting_name(o->setting), o->value, err);
		if (r < 0)
			return error_add(err, r, "command line");
	}
	return 0;
}

static int apply_config(struct options *o, const struct overrides *overrides)
{
	struct error err = { 0 };
	const char *file = o->config_file;
	config_default(&o->config);
	if (!file && !o->is_private && access(SYSTEM_CONFIG, F_OK) == 0)
		file = SYSTEM_CONFIG;
	int r = file ? config_load(CONFIG_SETTINGS, &o->config, file, complain, NULL, &err) : 0;
	if (r == 0 && o->tuning_file)
		r = config_load(CONFIG_TUNING, &o->config, o->tuning_file, complain, NULL, &err);
	if (r > 0)
		return 1;
	if (r == 0)
		r = set_all(&o->config, overrides, &err);
	if (r < 0) {
		complain(NULL, err.text);
		return 1;
	}
	return config_check(&o->config, "command line", complain, NULL) ? 1 : -1;
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
	case OPTION_READY_FD: return parse_ready_fd(optarg, &o->ready_fd);
	case OPTION_SIM_SOCKET: o->sim_socket = optarg; return -1;
	case OPTION_CONFIG: o->config_file = optarg; return -1;
	case OPTION_CHECK_CONFIG: return check_config(optarg);
	case OPTION_LIST_METRICS: metrics_print_list(stdout); return 0;
	case OPTION_TUNING: o->tuning_file = optarg; return -1;
	case OPTION_LIST_TUNING: config_print_help(CONFIG_TUNING, stdout); return 0;
	case OPTION_VERSION: puts("allotd " ALLOT_VERSION); return 0;
	case OPTION_HELP: print_help(); return 0;
	default: break;
	}
	overrides->item[overrides->count++] = (struct override){ (unsigned)(code - OPTION_SETTING),
								 optarg };
	return -1;
}

static int refuse_option(int code, const char *text)
{
	fprintf(stderr,
		code == ':' ? "allotd: '%s': needs a value; allotd --help has all options\n"
			    : "allotd: '%s': no such option, or one without a value; allotd --help "
			      "has all options\n",
		text);
	return 1;
}

/* Of our own options and of all settings, in both ways to write them. */
static struct option *make_table(char (**ret_names)[OPTION_MAX])
{
	unsigned settings = 0, n = ROW_COUNT;
	while (setting_name(settings))
		settings++;
	struct option *table = calloc(ROW_COUNT + (size_t)settings * 2 + 1, sizeof(*table));
	*ret_names = calloc((size_t)settings * 2, OPTION_MAX);
	if (!table || !*ret_names) {
		free(table);
		return NULL;
	}
	for (size_t i = 0; i < ROW_COUNT; i++)
		table[i] = (struct option){ rows[i].name,
					    rows[i].argument ? required_argument : no_argument,
					    NULL, rows[i].code };
	for (unsigned i = 0; i < settings * 2; i++, n++) {
		write_option(setting_name(i / 2), i % 2 ? '_' : '-', (*ret_names)[i]);
		table[n] = (struct option){ (*ret_names)[i], required_argument, NULL,
					    OPTION_SETTING + (int)(i / 2) };
	}
	return table;
}

int options_parse(int argc, char **argv, struct options *options)
{
	cleanup_free char(*names)[OPTION_MAX] = NULL;
	cleanup_free struct option *table = make_table(&names);
	cleanup_free struct override *items = calloc((size_t)argc, sizeof(*items));
	struct options o = { .ready_fd = -1 };
	struct overrides overrides = { .item = items };
	int code, r;

	if (!table || !items) {
		complain(NULL, "out of memory");
		return 1;
	}
	opterr = 0; /* it would use two lines */
	while ((code = getopt_long(argc, argv, ":", table, NULL)) >= 0) {
		r = code == '?' || code == ':' ? refuse_option(code, argv[optind - 1])
					       : take(code, &o, &overrides);
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
