/*
 * A program's settings: `key = value` lines, '#' begins a comment. One table row a setting: its name, kind, bounds, default
 * and help; the reader, the command line (base/settings/command_line.h) and --help come from the table. A table may also list names that
 * other programs have for its settings. One thread.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/error.h"

#define SETTINGS_TEXT_MAX 256 /* of a text's field, the final NUL included */

struct config; /* the program's own */

enum settings_kind {
	SETTINGS_TEXT,     /* char[SETTINGS_TEXT_MAX] */
	SETTINGS_PLACE,    /* the same: a full path, or the word that is its default */
	SETTINGS_SWITCH,   /* bool: on or off */
	SETTINGS_EITHER,   /* bool: true for the second of the row's two words */
	SETTINGS_CHOICE,   /* unsigned: the place among the row's words */
	SETTINGS_COUNT,    /* unsigned */
	SETTINGS_SIZE,     /* uint64_t, bytes; "0" where min is 0 */
	SETTINGS_DURATION, /* uint64_t, nanoseconds; no time, as "0" or "0s", where min is 0 */
	SETTINGS_PERCENT,  /* double; bounds in hundredths */
	SETTINGS_NUMBER,   /* double */
};

#define SETTINGS_PERCENT_BOUND(n) ((n)*100)

struct settings_row {
	const char *name;
	enum settings_kind kind;
	size_t offset; /* of its field */
	/* NULL: settings_default() leaves the field. "auto" of a size or a number: such a value is taken. */
	const char *default_text;
	uint64_t min, max;
	const char *help;
	const char *const *words; /* of a choice; NULL behind the last */
	/* A further check of a text, a choice or a number; NULL: none. Returns -errno, with an error that says what would be right. */
	int (*check)(const char *value, struct error *err);
	int automatic; /* the field of a size or a number that is "auto" */
};

/* A setting under a name that another program has for it. '-' and '_' are the same in it. */
struct settings_alias {
	const char *name;
	const char *setting; /* NULL: refused, or with `must` taken where the value is what is done anyway */
	/* Puts the setting's value to `ret`; "": there is nothing to set. NULL: the value is the setting's. */
	int (*translate)(const struct config *config, const char *value,
			 char ret[SETTINGS_TEXT_MAX], struct error *err);
	const char *why;  /* what is taken, or why it is refused; or NULL */
	const char *must; /* the only value there is, in words */
	bool is_switch;   /* on a command line "true" without a value */
};

typedef int (*settings_check)(const struct config *config, struct error *err);

struct settings_table {
	const struct settings_row *row;
	size_t count;
	const settings_check *check; /* what no value shows by itself; NULL behind the last, or for none */
	const struct settings_alias *alias; /* one without a name behind the last; or NULL */
	/* The error of a name that is nobody's, whose code is ENOENT; NULL: "there is no such setting". */
	int (*unknown)(const char *key, struct error *err);
};

/* Called once a bad line, with "file:line: key: value: what would be right". */
typedef void (*settings_complain)(void *data, const char *text);

/* NULL: there is none of that name. */
const struct settings_row *settings_find(const struct settings_table *table, const char *name);
/* The index-th name that a line may begin with: settings, then aliases; NULL behind the last. */
const char *settings_name(const struct settings_table *table, size_t index, bool *ret_is_switch);
/* Every field at its default. */
void settings_default(const struct settings_table *table, struct config *config);
/* -ENOENT: there is no such setting; -EINVAL, -ERANGE: with what would be right. *config is unchanged then. */
int settings_set(const struct settings_table *table, struct config *config, const char *key,
		 const char *value, struct error *err);
/* Line by line; bad ones change nothing. Returns how many are bad. */
unsigned settings_parse(const struct settings_table *table, struct config *config, const char *file,
			const char *text, settings_complain complain, void *data);
/* The same of a file; -errno when it can't be read. */
int settings_load(const struct settings_table *table, struct config *config, const char *file,
		  settings_complain complain, void *data, struct error *err);
/* The table's checks; `where` begins each complaint. Returns how many fail. */
unsigned settings_check_all(const struct settings_table *table, const struct config *config,
			    const char *where, settings_complain complain, void *data);

/* For the alias rows. -EINVAL where it is longer than a setting's text. */
int settings_put(char ret[SETTINGS_TEXT_MAX], struct error *err, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
/* 0 or 1, of whichever words programs have for false and true; or -EINVAL. */
int settings_parse_bool(const char *value, struct error *err);

/* A number of the row's kind in words. */
void settings_format(const struct settings_row *row, uint64_t value, char *text, size_t size);
/* `defaults`: a config at its defaults. */
void settings_format_default(const struct settings_row *row, const struct config *defaults,
			     char *text, size_t size);
/* One line a setting: name, default and meaning. */
void settings_print_help(const struct settings_table *table, const struct config *defaults,
			 FILE *out);
/* One line an alias: what it is here, or why not. */
void settings_print_aliases(const struct settings_table *table, FILE *out);
