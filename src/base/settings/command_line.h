/*
 * The command line of a program that has settings: the program's own options, and --KEY VALUE for each setting. Such a value
 * takes precedence over the one in the file of settings. KEY may have '-' or '_' between its words. Each error is printed on
 * standard error as one line.
 */
#pragma once

#include "base/settings/settings.h"

struct command_option {
	const char *name;
	const char *argument; /* NULL if the option takes no argument */
	const char *help;
};

struct command_line {
	const char *program;
	const struct command_option *option;
	unsigned option_count;
	const struct settings_table *table;
	/* Names that are no longer settings, or NULL. Their use is an error, for which table->unknown() writes the message. */
	const struct settings_table *former;
	/* Handles the program's own option with the index `option`. Returns -1 to go on, else the exit status. */
	int (*take)(void *data, unsigned option, const char *value);
};

/* Settings from the command line, to be set after those of the file. */
struct command_settings {
	unsigned count;
	struct command_setting {
		const char *key, *value;
	} * item;
};

/*
 * Calls line->take() for each of the program's own options, and stores the others in `settings`. Returns -1 to go on, else the
 * exit status. The caller frees settings->item; the texts in it belong to argv and the tables.
 */
int command_line_read(const struct command_line *line, int argc, char **argv, void *data,
		      struct command_settings *settings);
/* Sets the settings of `file` (or NULL), then `settings`, and checks all. Returns -1 to go on, else the exit status. */
int command_line_configure(const struct command_line *line, const struct command_settings *settings,
			   const char *file, struct config *config);
/* For --check-config: prints what is wrong with the file, or that it is good. Returns the exit status. */
int command_line_check_file(const struct command_line *line, const char *file,
			    struct config *config);

/* A settings_complain callback. `program` is the program's name. */
void command_line_complain(void *program, const char *text);
void command_line_print_help(const struct command_line *line, const struct config *defaults);
