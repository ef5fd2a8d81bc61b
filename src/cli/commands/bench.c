/* The benchmarks are a Python program that is installed beside `allot`. `allot bench` checks the options and executes it. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "cli/command.h"
#include "base/install.h"

#define INTERPRETER "python3"

struct bench_options {
	bool list;
	bool quick;
	const char *json;
	const char *out;
	const char *baseline;
	const char *tolerance;
	const char *part;
	const char *within;
	const char *seconds;
	const char *policies;
	const char *scenes;
	const char *ways;
	const char *runs;
	const char *sharing;
	const char *gpu;
	const char *rival_library;
	const char *rival_environment;
	const char *sim;
};

#define FLAG(name_, field, help_) \
	OPTION(name_, OPTION_VALUE_NONE, NULL, option_flag, struct bench_options, field, \
	       .help = (help_))
#define TEXT(name_, argument_, field, help_) \
	OPTION(name_, OPTION_VALUE_REQUIRED, argument_, option_text, struct bench_options, field, \
	       .help = (help_))

static const struct option_row rows[] = {
	FLAG("--list", list, "list the benchmarks and how long each takes"),
	FLAG("--quick", quick, "measure for a shorter time, less exactly"),
	TEXT("--json", "FILE", json, "write the result to FILE; for one benchmark only"),
	TEXT("--out", "DIR", out, "write a JSON file and plots of each benchmark to DIR"),
	TEXT("--baseline", "FILE", baseline,
	     "with regress: the earlier --json result to compare with"),
	TEXT("--tolerance", "PCT", tolerance,
	     "with regress: percent a result may be worse (default: 2)"),
	TEXT("--part", "N/M", part, "measure only the N-th of M parts of a large benchmark"),
	TEXT("--within", "S", within,
	     "finish within S seconds: start nothing that would end\n"
	     "later, and report what was not measured"),
	TEXT("--seconds", "S", seconds, "length of one measurement (default: 20; --quick: 5)"),
	TEXT("--policies", "LIST", policies,
	     "with policies, arrivals, epoch_quota, epoch_memory,\n"
	     "seed_models, models_overhead: the policies to compare\n"
	     "(default: lease,feedback,token for policies, else lease)"),
	TEXT("--scenes", "LIST", scenes,
	     "with llm: the scenes to measure, such as servers,eager\n"
	     "(default: all)"),
	TEXT("--ways", "LIST", ways,
	     "with llm: the ways of sharing to measure, such as\n"
	     "alone,native,turns (default: all)"),
	TEXT("--runs", "N", runs,
	     "run each benchmark N times, and judge the medians\n"
	     "(default: 1); llm measures each way so often (default:\n"
	     "3; --quick: 1)"),
	OPTION("--sharing", OPTION_VALUE_REQUIRED, "time|space", option_choice,
	       struct bench_options, sharing, .offered = "time space",
	       .help = "how the tenants share the GPU, as in allot run"),
	TEXT("--gpu", "INDEX", gpu,
	     "the GPU that all programs of a benchmark use\n"
	     "(default: 0); topology and ddp_half use several"),
	TEXT("--rival-library", "FILE", rival_library,
	     "another project's library that limits programs by\n"
	     "LD_PRELOAD: cap, three, fifty_beside_four and\n"
	     "resnet_half also run with it, without allot"),
	TEXT("--rival-environment", "LIST", rival_environment,
	     "NAME=VALUE,... for that library; {memory_mib},\n"
	     "{cores_pct} and {name} in values are filled in"),
	OPTION("--sim", OPTION_VALUE_REQUIRED, "SPEC", option_text, struct bench_options, sim,
	       .offered = OPTION_SIM_SPECS,
	       .help = "measure a simulated GPU: h200, or a file (allot-sim(5))"),
	OPTION_END,
};

/* Does not own the strings. */
struct arguments {
	char **words;
	size_t count;
};

static void add(struct arguments *a, const char *word)
{
	a->words[a->count++] = (char *)word;
}

static void add_option(struct arguments *a, const struct option_row *row, const void *field)
{
	if (row->parse == option_flag) {
		if (*(const bool *)field)
			add(a, row->name);
	} else if (*(const char *const *)field) {
		add(a, row->name);
		add(a, *(const char *const *)field);
	}
}

static int check(const struct bench_options *options, int names, char **name, struct error *err)
{
	if (options->json && names != 1)
		return error_set(
			err, EINVAL,
			"--json: works with one benchmark; name one that allot bench --list lists");
	if (names == 0 && !options->list)
		return error_set(
			err, EINVAL,
			"a benchmark is missing: write its name, or all; allot bench --list lists them");
	for (int i = 0; i < names; i++)
		if (*name[i] == '-' || *name[i] == '\0')
			return error_set(err, EINVAL,
					 "'%s': is not a benchmark; allot bench --list lists them",
					 name[i]);
	return 0;
}

static bool is_all(int names, char **name)
{
	return names == 1 && strcmp(name[0], "all") == 0;
}

/* Executes the benchmarks' program in place of this one; returns only on failure. */
static int run_benches(const struct bench_options *options, int names, char **name,
		       struct error *err)
{
	char program[PATHS_MAX], folder[PATHS_MAX];
	struct arguments a = { 0 };
	size_t room = 8 + (size_t)names + 2 * (sizeof(rows) / sizeof(rows[0]));
	int r = install_find(INSTALL_BENCH, program, err);

	if (r == 0)
		r = install_own_directory(folder, err);
	if (r < 0)
		return r;
	cleanup_free char **words = calloc(room, sizeof(*words));
	if (!words)
		return error_set(err, ENOMEM, "out of memory");
	a.words = words;
	add(&a, INTERPRETER);
	add(&a, program);
	add(&a, "--build");
	add(&a, folder);
	for (const struct option_row *row = rows; row->name; row++)
		add_option(&a, row, (const char *)options + row->offset);
	if (!options->out) {
		add(&a, "--out");
		add(&a, "");
	}
	for (int i = 0; i < names && !is_all(names, name); i++)
		add(&a, name[i]);
	execvp(INTERPRETER, a.words);
	if (errno == ENOENT)
		return error_set(err, ENOENT,
				 "the benchmarks need " INTERPRETER
				 ", which is not in PATH: install it");
	return error_set_errno(err, errno, "%s", INTERPRETER);
}

static int bench_run(const struct command *self, int argc, char **argv)
{
	struct bench_options options = { 0 };
	struct error err = { 0 };
	bool help = false;
	int names = options_read(rows, OPTIONS_ANYWHERE, argc, argv, &options, &help, &err);

	if (help)
		return command_help(self);
	if (names < 0 || check(&options, names, argv, &err) < 0)
		return command_fail(self, &err, EXIT_USAGE);
	run_benches(&options, names, argv, &err);
	return command_fail(self, &err, EXIT_REFUSED);
}

const struct command command_bench = {
	.name = "bench",
	.usage = "NAME... [OPTION...]",
	.summary = "measure whether tenants get what they asked for",
	.about = "Runs benchmarks with tenants of their own, on a GPU that is otherwise idle.\n"
		 "Prints what was asked for, what was got and what the GPU gives without allot,\n"
		 "each with the bar it must meet. NAME is one of allot bench --list, or all.\n\n"
		 "allot bench regress --baseline FILE measures again what FILE (an earlier\n"
		 "--json) contains. Exit status: 0 if every bar was met, 1 if not.",
	.rows = rows,
	.operand = OPERAND_BENCH,
	.run = bench_run,
};
