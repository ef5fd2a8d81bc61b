/*
 * The subcommands of `allot`, one file each; main.c lists them. An operand is an argument that is not an option. A subcommand
 * has either `act` or `run`. With `act`, main.c reads the options and the operand, and prints errors; `run` does this itself.
 */
#pragma once

#include <jansson.h>
#include <signal.h>
#include <stddef.h>

#include "base/error.h"
#include "cli/options.h"

/* Exit statuses of all subcommands but `run`, which has its own (run/command_child.h). */
#define EXIT_REFUSED 1 /* the request could not be done, or doctor or bench found a fault */
#define EXIT_USAGE 2

enum operand {
	OPERAND_NONE,
	OPERAND_TENANT,
	OPERAND_GPU,
	OPERAND_BENCH,
	OPERAND_COMMAND, /* a command with its own arguments */
	OPERAND_DIRECTORY,
	OPERAND_OTHER,
};

struct command {
	const char *name;
	const char *usage; /* what follows "allot NAME " in the usage line */
	const char *summary;
	const char *about; /* text for --help, after the usage; if NULL, the summary is printed */
	const struct option_row *rows;
	enum operand operand;
	/* The command's own subcommands, such as "cdi create"; the last entry has no name; NULL if there are none. */
	const struct command *actions;

	/* ---- used only with `act` ---- */
	size_t options_size;  /* size of the options struct that `rows` fill in */
	const void *defaults; /* the options' initial values; if NULL, all are zero */
	/* the error text if there is not exactly one operand; NULL if the command takes no operand */
	const char *wanted;
	/* Checks options and operand; may be NULL. After a failure, allot exits with EXIT_USAGE. */
	int (*check)(const void *options, const char *operand, struct error *err);
	/* Does the work. Returns the exit status; or a negative value and `err`: allot then exits with EXIT_REFUSED. */
	int (*act)(const struct command *self, void *options, char *operand, struct error *err);

	/* ---- used only without `act`: gets the arguments after the name, returns the exit status ---- */
	int (*run)(const struct command *self, int argc, char **argv);
};

#define WANTED_TENANT "write one tenant's name; allot ps lists them"

/* Runs the subcommand with the arguments after its name. Returns the exit status. */
int command_start(const struct command *self, int argc, char **argv);

/* A callback for command.check: requires that the operand is a valid tenant name. */
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
 * Runs `allot complete`, which is in no list of commands because only shells call it. argv[0..argc) are the words for
 * completion_find(). Prints "WORD\tHELP" for each matching word. If the shell must complete the word itself, prints ":file",
 * ":directory", or ":command I" for a command that begins at word I. Returns 0.
 */
int complete_run(const struct command *const *commands, int argc, char **argv);

/* Prints "allot: NAME: text" to stderr and returns status. */
int command_fail(const struct command *self, const struct error *err, int status);

/* Prints the subcommand's help to stdout and returns 0. */
int command_help(const struct command *self);

/* Prints `json` and a newline to stdout; `flags` are json_dumpf()'s. NULL counts as out of memory. Returns 0 or -errno. */
int command_print_json(const json_t *json, size_t flags, struct error *err);

/* The terminal's width in columns; `otherwise` if standard output is no terminal, or its width is unknown. */
int command_columns(int otherwise);

/* The last signal that was caught after command_catch_signals(); 0 if none. */
extern volatile sig_atomic_t command_signal;
/*
 * From now on SIGINT, SIGTERM and SIGHUP only set command_signal, and interrupt system calls (no SA_RESTART). With the flag
 * SA_RESETHAND, a second such signal ends the program.
 */
void command_catch_signals(int flags);
