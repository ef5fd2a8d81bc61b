#include "scheduler/options.h"

#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "scheduler/service/config_foreign.h"
#include "scheduler/service/issuer.h"

#define SYSTEM_CONFIG "/etc/allot/allot-scheduler.conf"
#define OPTION_MAX 48
#define ISSUE_NAMES "allot-scheduler.kube-system.svc,localhost,127.0.0.1,::1"

enum {
	OPTION_CONFIG = 256,
	OPTION_CHECK_CONFIG,
	OPTION_ISSUE,
	OPTION_NAMES,
	OPTION_CA_BUNDLE,
	OPTION_VERSION,
	OPTION_HELP,
	OPTION_SETTING, /* and those behind it: in the table's order */
};

static const struct {
	const char *name, *argument;
	int code;
	const char *help;
} rows[] = {
	{ "config", "FILE", OPTION_CONFIG, "settings; default " SYSTEM_CONFIG },
	{ "check-config", "FILE", OPTION_CHECK_CONFIG, "check a file of settings and exit" },
	{ "issue", "DIR", OPTION_ISSUE,
	  "make a certificate, tls.crt, and its key, tls.key, there, print its caBundle and exit" },
	{ "names", "LIST", OPTION_NAMES, "what that is for; default " ISSUE_NAMES },
	{ "ca-bundle", "FILE", OPTION_CA_BUNDLE,
	  "print a file of certificates as a webhook's caBundle and exit" },
	{ "version", NULL, OPTION_VERSION, "print the version and exit" },
	{ "help", NULL, OPTION_HELP, "print this and exit" },
};
#define ROW_COUNT (sizeof(rows) / sizeof(rows[0]))

struct parsed {
	const char *config_file, *issue_dir, *names;
	unsigned overrides;
	struct override {
		const char *key, *value;
	} * override; /* as many as there are words */
};

static void complain(void *data, const char *text)
{
	fprintf(stderr, "allot-scheduler: %s\n", text);
}

static void print_help(void)
{
	puts("usage: allot-scheduler [OPTION...]\n"
	     "Completes and checks pods that ask for parts of GPUs, as Kubernetes' webhook, and "
	     "says\n"
	     "which nodes and cards they go to, as an extender of its scheduler.\n");
	for (size_t i = 0; i < ROW_COUNT; i++) {
		char left[40];
		snprintf(left, sizeof(left), "--%s%s%s", rows[i].name, rows[i].argument ? " " : "",
			 rows[i].argument ? rows[i].argument : "");
		printf("  %-20s %s\n", left, rows[i].help);
	}
	puts("\nSettings, their defaults and meaning; 'key = value' in a file, or --key VALUE, "
	     "which goes before it:");
	settings_print_help(&config_table, stdout);
	puts("\nNames that HAMi's scheduler has for some, or for what is not set here:");
	config_foreign_print_help(stdout);
}

/* Of the n-th option that is a setting, ours first; NULL behind the last. A switch of HAMi's may have no value. */
static const char *setting_name(size_t n, bool *ret_is_switch)
{
	*ret_is_switch = false;
	if (n < config_table.count)
		return config_table.row[n].name;
	return config_foreign_name((unsigned)(n - config_table.count), ret_is_switch);
}

static size_t count_settings(void)
{
	bool is_switch;
	size_t n = 0;
	while (setting_name(n, &is_switch))
		n++;
	return n;
}

static int check_config(const char *file)
{
	struct config config;
	struct error err = { 0 };
	settings_default(&config_table, &config);
	int r = settings_load(&config_table, &config, file, complain, NULL, &err);
	if (r < 0)
		complain(NULL, err.text);
	if (r == 0)
		printf("%s: good\n", file);
	return r == 0 ? 0 : 1;
}

static int print_bundle(const char *file)
{
	cleanup_free char *base64 = NULL;
	struct error err = { 0 };
	if (issuer_bundle(file, &base64, &err) < 0) {
		complain(NULL, err.text);
		return 1;
	}
	puts(base64);
	return 0;
}

static int issue(const char *dir, const char *names)
{
	char path[PATH_MAX];
	struct error err = { 0 };
	if (*dir == '-') {
		fprintf(stderr,
			"allot-scheduler: --issue: '%s' looks like an option; a directory is "
			"wanted, "
			"and ./%s if it is one\n",
			dir, dir);
		return 1;
	}
	if (issuer_make(dir, names ? names : ISSUE_NAMES, &err) < 0) {
		complain(NULL, err.text);
		return 1;
	}
	snprintf(path, sizeof(path), "%s/" ISSUER_CERTIFICATE, dir);
	return print_bundle(path);
}

/* The file first, and what the command line says over it. */
static int apply_config(const struct parsed *p, struct config *config)
{
	struct error err = { 0 };
	const char *file = p->config_file;
	settings_default(&config_table, config);
	if (!file && access(SYSTEM_CONFIG, F_OK) == 0)
		file = SYSTEM_CONFIG;
	/* What several lines are together is looked at when the command line has had its say. */
	struct settings_table lines = config_table;
	lines.check = NULL;
	int r = file ? settings_load(&lines, config, file, complain, NULL, &err) : 0;
	if (r > 0)
		return 1;
	for (unsigned i = 0; r >= 0 && i < p->overrides; i++) {
		const struct override *o = &p->override[i];
		r = settings_set(&config_table, config, o->key, o->value, &err);
		if (r < 0)
			error_add(&err, r, "command line");
	}
	if (r >= 0)
		r = config_table.check(config, &err);
	if (r >= 0)
		return -1;
	complain(NULL, err.text);
	return 1;
}

static int take(int code, struct parsed *p)
{
	switch (code) {
	case OPTION_CONFIG: p->config_file = optarg; return -1;
	case OPTION_CHECK_CONFIG: return check_config(optarg);
	case OPTION_ISSUE: p->issue_dir = optarg; return -1;
	case OPTION_NAMES: p->names = optarg; return -1;
	case OPTION_CA_BUNDLE: return print_bundle(optarg);
	case OPTION_VERSION: puts("allot-scheduler " ALLOT_VERSION); return 0;
	case OPTION_HELP: print_help(); return 0;
	default: break;
	}
	bool is_switch;
	const char *name = setting_name((size_t)(code - OPTION_SETTING), &is_switch);
	p->override[p->overrides++] = (struct override){ name, optarg ? optarg : "true" };
	return -1;
}

static int refuse_option(int code, const char *text)
{
	fprintf(stderr,
		code == ':' ? "allot-scheduler: '%s': needs a value; allot-scheduler --help has all "
			      "options\n"
			    : "allot-scheduler: '%s': no such option, or one without a value; "
			      "allot-scheduler --help has all options\n",
		text);
	return 1;
}

/* Options are written with '-'; '_' is taken as well. */
static struct option *make_table(char (**ret_names)[OPTION_MAX])
{
	size_t n = ROW_COUNT;
	size_t settings = count_settings();
	struct option *table = calloc(ROW_COUNT + settings * 2 + 1, sizeof(*table));
	*ret_names = calloc(settings * 2, OPTION_MAX);
	if (!table || !*ret_names) {
		free(table);
		return NULL;
	}
	for (size_t i = 0; i < ROW_COUNT; i++)
		table[i] = (struct option){ rows[i].name,
					    rows[i].argument ? required_argument : no_argument,
					    NULL, rows[i].code };
	for (size_t i = 0; i < settings * 2; i++, n++) {
		char *name = (*ret_names)[i], from = i % 2 ? '_' : '-', to = i % 2 ? '-' : '_';
		bool is_switch;
		snprintf(name, OPTION_MAX, "%s", setting_name(i / 2, &is_switch));
		for (char *c = name; *c; c++)
			*c = *c == from ? to : *c;
		table[n] = (struct option){ name, is_switch ? optional_argument : required_argument,
					    NULL, OPTION_SETTING + (int)(i / 2) };
	}
	return table;
}

int options_parse(int argc, char **argv, struct config *config)
{
	cleanup_free char(*names)[OPTION_MAX] = NULL;
	cleanup_free struct option *table = make_table(&names);
	cleanup_free struct override *overrides = calloc((size_t)argc, sizeof(*overrides));
	struct parsed p = { .override = overrides };
	int code;
	if (!table || !overrides) {
		complain(NULL, "out of memory");
		return 1;
	}
	opterr = 0; /* it would use two lines */
	while ((code = getopt_long(argc, argv, ":", table, NULL)) >= 0) {
		int r = code == '?' || code == ':' ? refuse_option(code, argv[optind - 1])
						   : take(code, &p);
		if (r >= 0)
			return r;
	}
	if (optind < argc) {
		fprintf(stderr,
			"allot-scheduler: '%s': no such argument; try 'allot-scheduler "
			"--help'\n",
			argv[optind]);
		return 1;
	}
	if (p.names && !p.issue_dir) {
		complain(NULL, "--names: needs --issue DIR");
		return 1;
	}
	return p.issue_dir ? issue(p.issue_dir, p.names) : apply_config(&p, config);
}
