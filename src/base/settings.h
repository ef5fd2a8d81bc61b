/*
 * A program's settings: `key = value` lines, '#' begins a comment. One table row a setting: its name, kind, bounds, default
 * and help; the reader, the command line and --help come from the table. One thread.
 */
#ifndef ALLOT_BASE_SETTINGS_H
#define ALLOT_BASE_SETTINGS_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/error.h"

#define SETTINGS_TEXT_MAX 256 /* of a text's field, the final NUL included */

enum settings_kind {
	SETTINGS_TEXT,     /* char[SETTINGS_TEXT_MAX] */
	SETTINGS_PLACE,    /* the same: a full path, or the word that is its default */
	SETTINGS_SWITCH,   /* bool: on or off */
	SETTINGS_CHOICE,   /* unsigned: the place among the row's words */
	SETTINGS_COUNT,    /* unsigned */
	SETTINGS_SIZE,     /* uint64_t, bytes; "0" where min is 0 */
	SETTINGS_DURATION, /* uint64_t, nanoseconds; "0" where min is 0 */
};

struct settings_row {
	const char *name;
	enum settings_kind kind;
	size_t offset; /* of its field */
	const char *default_text;
	uint64_t min, max;
	const char *const *words; /* of a choice; NULL behind the last */
	/* What else a text has to be; NULL: nothing. -errno with what would be right. */
	int (*check)(const char *value, struct error *err);
	const char *help;
};

struct settings_table {
	const struct settings_row *row;
	size_t count;
	/* What no value by itself shows; NULL: nothing. */
	int (*check)(const void *config, struct error *err);
	/* A name that no row has: 0 where it was taken for one, -ENOENT where it is nobody's. NULL: there are none. */
	int (*foreign)(void *config, const char *key, const char *value, struct error *err);
};

/* Called once a bad line, with "file:line: key: value: what would be right". */
typedef void (*settings_complain)(void *data, const char *text);

/* Every field at its default. */
void settings_default(const struct settings_table *table, void *config);
/* -ENOENT: there is no such setting; -EINVAL, -ERANGE: with what would be right. *config is unchanged then. */
int settings_set(const struct settings_table *table, void *config, const char *key,
		 const char *value, struct error *err);
/* Line by line; bad ones change nothing. Returns how many are bad, what settings_table.check finds among them. */
unsigned settings_parse(const struct settings_table *table, void *config, const char *file,
			const char *text, settings_complain complain, void *data);
/* The same of a file; -errno when it can't be read. */
int settings_load(const struct settings_table *table, void *config, const char *file,
		  settings_complain complain, void *data, struct error *err);

/* One line a setting: name, default and meaning. */
void settings_print_help(const struct settings_table *table, FILE *out);

#endif
