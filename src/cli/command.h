/*
 * The subcommands of `allot`, a file each; main.c has the list. Most have `act`: main.c reads their options and their operand,
 * and prints what went wrong. The others have `run` and do that themselves.
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

	/* ---- with `act` ---- */
	size_t options_size;  /* of what the rows fill in */
	const void *defaults; /* what the options are before they are read; NULL: zeros */
	const char *wanted;   /* the error where there is not one operand; NULL: it takes none */
	/* A wrong option or operand, to which the exit status is EXIT_USAGE. NULL: all are right. */
	int (*check)(const void *options, const char *operand, struct error *err);
	/* Returns the exit status, or below 0 with `err` set: that is EXIT_REFUSED. The operand is in argv. */
	int (*act)(const struct command *self, void *options, char *operand, struct error *err);

	/* ---- without: gets the arguments after the name, and returns the exit status ---- */
	int (*run)(const struct command *self, int argc, char **argv);
};

#define WANTED_TENANT "write one tenant's name; allot ps lists them"

/* Runs a subcommand with the arguments after its name; returns the exit status. */
int command_start(const struct command *self, int argc, char **argv);

/* A `check` of commands that have nothing to check but that the operand can be a tenant's name. */
int command_check_tenant(const void *options, const char *operand, struct error *err);

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
