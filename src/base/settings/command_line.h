/*
 * The command line of a program that has settings: its own options, and --KEY VALUE for each setting, which goes before the
 * file's. Options are written with '-'; '_' is taken as well. What is wrong is said on standard error, a line each.
 */
#pragma once

#include "base/settings/settings.h"

struct command_option {
	const char *name;
	const char *argument; /* NULL: it has none */
	const char *help;
};

struct command_line {
	const char *program;
	const struct command_option *option;
	unsigned option_count;
	const struct settings_table *table;
	const struct settings_table *former; /* settings once, whose error says so; or NULL */
	/* Of an option, by its place. Returns -1 to go on, else the exit status. */
	int (*take)(void *data, unsigned option, const char *value);
};

/* Settings of the command line, which are set after the file's. */
struct command_settings {
	unsigned count;
	struct command_setting {
		const char *key, *value;
	} * item;
};

/* Returns -1 to go on, else the exit status. The caller frees settings->item; its texts are argv's and the tables'. */
int command_line_read(const struct command_line *line, int argc, char **argv, void *data,
		      struct command_settings *settings);
/* Sets the file's (NULL: none) and then those in *config, and checks all. The same result. */
int command_line_configure(const struct command_line *line, const struct command_settings *settings,
			   const char *file, struct config *config);
/* For --check-config: says what is wrong with the file, or that it is good. Returns the exit status. */
int command_line_check_file(const struct command_line *line, const char *file,
			    struct config *config);

/* For settings_complain: `program` is its name. */
void command_line_complain(void *program, const char *text);
/* What --help says of options and settings. */
void command_line_print_help(const struct command_line *line, const struct config *defaults);
