/*
 * A program's settings: lines `key = value`; '#' begins a comment. Each setting is one table row with its name, kind, bounds,
 * default and help. The reader, the command line (base/settings/command_line.h) and --help use the table. A table may also list
 * the names that other programs have for its settings. Use from one thread.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/error.h"

#define SETTINGS_TEXT_MAX 256 /* size of a text field, including the NUL */

struct config; /* defined by the program */

enum settings_kind {
	SETTINGS_TEXT,     /* char[SETTINGS_TEXT_MAX] */
	SETTINGS_PLACE,    /* char[SETTINGS_TEXT_MAX]: a full path, or the row's default_text */
	SETTINGS_SWITCH,   /* bool: on or off */
	SETTINGS_EITHER,   /* bool: true for the second of the row's two words */
	SETTINGS_CHOICE,   /* unsigned: index into the row's words */
	SETTINGS_COUNT,    /* unsigned */
	SETTINGS_SIZE,     /* uint64_t, bytes; "0" or "0MiB" is allowed if min is 0 */
	SETTINGS_DURATION, /* uint64_t, nanoseconds; "0" or "0s" is allowed if min is 0 */
	SETTINGS_PERCENT,  /* double; bounds in hundredths of a percent; "0" allowed if min is 0 */
	SETTINGS_NUMBER,   /* double */
};

#define SETTINGS_PERCENT_BOUND(n) ((n)*100)

struct settings_row {
	const char *name;
	enum settings_kind kind;
	size_t offset;
	/* The default, or NULL. If it is "auto", for a size or number, users may write "auto" too. */
	const char *default_text;
	uint64_t min, max;
	const char *help;
	/* words of a SETTINGS_CHOICE or SETTINGS_EITHER, ended by NULL */
	const char *const *words;
	/* Checks the value of a text, a choice or a number further; or NULL. The error says what would be right. */
	int (*check)(const char *value, struct error *err);
	int automatic; /* value of the field for "auto" */
};

/* Another program's name for a setting. '-' and '_' are equivalent in the name. */
struct settings_alias {
	const char *name;
	const char *setting; /* NULL if the alias is refused, or accepts only the value `must` */
	/*
	 * Translates `value`, the alias's value, to the setting's value in `ret`. An empty `ret` leaves the setting unchanged.
	 * If the callback is NULL, the setting gets `value` itself; if `setting` is NULL too, the alias is refused.
	 */
	int (*translate)(const struct config *config, const char *value,
			 char ret[SETTINGS_TEXT_MAX], struct error *err);
	const char *why;  /* the accepted values, or why the alias is refused; or NULL */
	const char *must; /* for messages: names the only accepted value, as in "must be nvidia" */
	bool is_switch;   /* on the command line, no value means "true" */
};

typedef int (*settings_check)(const struct config *config, struct error *err);

struct settings_table {
	const struct settings_row *row;
	size_t count;
	const settings_check *check;        /* checks of several settings, ended by NULL, or NULL */
	const struct settings_alias *alias; /* ended by an alias without a name; or NULL */
	/* Makes the error (ENOENT) for an unknown name. If NULL, the error is "there is no such setting". */
	int (*unknown)(const char *key, struct error *err);
};

/* Called for each error in the settings. `text` has the place, such as "file:line", and says what would be right. */
typedef void (*settings_complain)(void *data, const char *text);

const struct settings_row *settings_find(const struct settings_table *table, const char *name);
/* The index-th name of a setting (settings, then aliases), or NULL after the last. */
const char *settings_name(const struct settings_table *table, size_t index, bool *ret_is_switch);
/* Leaves a field without a default unchanged. */
void settings_default(const struct settings_table *table, struct config *config);
/* `key` is a setting or an alias. -ENOENT if there is none; -EINVAL or -ERANGE for a wrong value, which changes nothing. */
int settings_set(const struct settings_table *table, struct config *config, const char *key,
		 const char *value, struct error *err);
/* Bad lines change nothing. Returns the number of bad lines. */
unsigned settings_parse(const struct settings_table *table, struct config *config, const char *file,
			const char *text, settings_complain complain, void *data);
/* Like settings_parse(), for a file; -errno if the file can't be read. */
int settings_load(const struct settings_table *table, struct config *config, const char *file,
		  settings_complain complain, void *data, struct error *err);
/* `where` begins each complaint. Returns the number of failed checks. */
unsigned settings_check_all(const struct settings_table *table, const struct config *config,
			    const char *where, settings_complain complain, void *data);

/* For an alias's `translate`: formats into `ret`. -EINVAL if the result does not fit. */
int settings_put(char ret[SETTINGS_TEXT_MAX], struct error *err, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
/* Parses a boolean in the spellings of other programs ("True", "f", "0", "on" ...). Returns 0 or 1, or -EINVAL. */
int settings_parse_bool(const char *value, struct error *err);
/*
 * Returns true if `text` matches one of the patterns (fnmatch(3)). Commas separate the patterns; blanks beside a comma are
 * ignored. `patterns` has at most SETTINGS_TEXT_MAX - 1 bytes.
 */
bool settings_list_matches(const char *patterns, const char *text);

void settings_format(const struct settings_row *row, uint64_t value, char *text, size_t size);
/* `defaults` must be a config with all defaults. */
void settings_format_default(const struct settings_row *row, const struct config *defaults,
			     char *text, size_t size);
void settings_print_help(const struct settings_table *table, const struct config *defaults,
			 FILE *out);
/* One line per alias: the corresponding setting, or the only accepted value, or that the alias is refused; and why. */
void settings_print_aliases(const struct settings_table *table, FILE *out);
