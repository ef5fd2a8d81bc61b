/*
 * The subcommands of `allot`, a file each. main.c has the list; a subcommand's `run` gets the
 * arguments after its name and returns the exit status.
 */
#pragma once

#include <stdio.h>

#include "base/error.h"
#include "cli/options.h"

/* Exit statuses of every subcommand but run, which has its own (run.h). */
#define EXIT_REFUSED 1 /* what was asked for could not be done */
#define EXIT_USAGE 2

/* What stands beside the options, for completion. */
enum operand {
	OPERAND_NONE,
	OPERAND_TENANT,
	OPERAND_GPU,
	OPERAND_BENCH,
	OPERAND_COMMAND, /* and its own arguments */
	OPERAND_DIRECTORY,
	OPERAND_OTHER,
};

struct command {
	const char *name;
	const char *usage;   /* after "allot NAME " */
	const char *summary; /* one line */
	const char *about;   /* paragraph(s) for --help, after the usage; NULL: the summary */
	const struct option_row *rows;
	enum operand operand;
	const struct command *actions; /* "cdi create", ...; ends without a name; NULL: none */
	int (*run)(const struct command *self, int argc, char **argv);
};

extern const struct command command_run;
extern const struct command command_ps;
extern const struct command command_set;
extern const struct command command_pause;
extern const struct command command_resume;
extern const struct command command_tasks;
extern const struct command command_top;
extern const struct command command_topo;
extern const struct command command_cordon;
extern const struct command command_uncordon;
extern const struct command command_mirror;
extern const struct command command_cdi;
extern const struct command command_bench;
extern const struct command command_doctor;
extern const struct command command_explain;
extern const struct command command_trace;

/*
 * allot complete, which is not in the list of commands since no user types it. argv[0..argc): as completion_find() has them.
 * Prints a line "WORD\tHELP" for each word that fits, or ":file", ":directory", ":command I" for what the shell itself
 * completes. Returns 0.
 */
int complete_run(const struct command *const *commands, int argc, char **argv);

/* Prints "allot: NAME: text" to stderr and returns status. */
int command_fail(const struct command *self, const struct error *err, int status);

/* Prints the subcommand's help to stdout and returns 0. */
int command_help(const struct command *self);
