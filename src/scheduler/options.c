#include "scheduler/options.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/settings/command_line.h"
#include "scheduler/service/issuer.h"

#define SYSTEM_CONFIG "/etc/allot/allot-scheduler.conf"
#define ISSUE_NAMES "allot-scheduler.kube-system.svc,localhost,127.0.0.1,::1"

enum {
	OPTION_CONFIG,
	OPTION_CHECK_CONFIG,
	OPTION_ISSUE,
	OPTION_NAMES,
	OPTION_CA_BUNDLE,
	OPTION_VERSION,
	OPTION_HELP,
	OPTIONS,
};

static const struct command_option rows[OPTIONS] = {
	[OPTION_CONFIG] = { "config", "FILE",
			    "file of settings; default " SYSTEM_CONFIG " if it exists" },
	[OPTION_CHECK_CONFIG] = { "check-config", "FILE",
				  "check a file of settings, print its errors, and exit" },
	[OPTION_ISSUE] = { "issue", "DIR",
			   "make a self-signed certificate (tls.crt, tls.key) in DIR, print its caBundle and exit" },
	[OPTION_NAMES] = { "names", "LIST",
			   "with --issue: DNS names and addresses of the certificate; default " ISSUE_NAMES },
	[OPTION_CA_BUNDLE] = { "ca-bundle", "FILE",
			       "print a PEM file of certificates as the caBundle of a webhook configuration and exit" },
	[OPTION_VERSION] = { "version", NULL, "print the version and exit" },
	[OPTION_HELP] = { "help", NULL, "print this help and exit" },
};

struct parsed {
	const char *config_file, *issue_dir, *names;
};

static int take(void *data, unsigned option, const char *value);

static const struct command_line command_line = {
	.program = "allot-scheduler",
	.option = rows,
	.option_count = OPTIONS,
	.table = &config_table,
	.take = take,
};

static void complain(const char *text)
{
	command_line_complain((void *)command_line.program, text);
}

static void print_help(void)
{
	struct config defaults;
	settings_default(&config_table, &defaults);
	puts("usage: allot-scheduler [OPTION...]\n"
	     "Places pods that request parts of GPUs: completes and checks them as a mutating\n"
	     "webhook of Kubernetes, and chooses nodes and GPUs as an extender of kube-scheduler.\n");
	command_line_print_help(&command_line, &defaults);
	puts("\nNames of HAMi's scheduler flags that are also understood, and what each sets:");
	settings_print_aliases(&config_table, stdout);
}

static int check_config(const char *file)
{
	struct config config;
	settings_default(&config_table, &config);
	return command_line_check_file(&command_line, file, &config);
}

static int print_bundle(const char *file)
{
	cleanup_free char *base64 = NULL;
	struct error err = { 0 };
	if (issuer_bundle(file, &base64, &err) < 0) {
		complain(err.text);
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
			"allot-scheduler: --issue: '%s' looks like an option; write a directory (./%s if that is its name)\n",
			dir, dir);
		return 1;
	}
	if (issuer_make(dir, names ? names : ISSUE_NAMES, &err) < 0) {
		complain(err.text);
		return 1;
	}
	snprintf(path, sizeof(path), "%s/" ISSUER_CERTIFICATE, dir);
	return print_bundle(path);
}

static int take(void *data, unsigned option, const char *value)
{
	struct parsed *p = data;
	switch (option) {
	case OPTION_CONFIG: p->config_file = value; return -1;
	case OPTION_CHECK_CONFIG: return check_config(value);
	case OPTION_ISSUE: p->issue_dir = value; return -1;
	case OPTION_NAMES: p->names = value; return -1;
	case OPTION_CA_BUNDLE: return print_bundle(value);
	case OPTION_VERSION: puts("allot-scheduler " ALLOT_VERSION); return 0;
	default: print_help(); return 0;
	}
}

int options_parse(int argc, char **argv, struct config *config)
{
	struct parsed p = { 0 };
	struct command_settings settings;
	int r = command_line_read(&command_line, argc, argv, &p, &settings);
	const char *file = p.config_file;
	if (r < 0 && p.names && !p.issue_dir) {
		complain("--names: needs --issue DIR");
		r = 1;
	} else if (r < 0 && p.issue_dir) {
		r = issue(p.issue_dir, p.names);
	} else if (r < 0) {
		if (!file && access(SYSTEM_CONFIG, F_OK) == 0)
			file = SYSTEM_CONFIG;
		settings_default(&config_table, config);
		r = command_line_configure(&command_line, &settings, file, config);
	}
	free(settings.item);
	return r;
}
