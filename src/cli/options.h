/*
 * Options of a subcommand, one table row each. The row's parser reads the value; --help is made from the rows.
 *
 *     static const struct option_row rows[] = {
 *         OPTION("--memory", OPTION_VALUE_REQUIRED, "SIZE", option_size, struct run_options, memory, .help = "quota ..."),
 *         OPTION_END,
 *     };
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/error.h"
#include "base/parse.h"

/* Values of options. If an option is absent, `is_set` is false. */
struct option_size {
	bool is_set;
	uint64_t bytes;
};

struct option_percent {
	bool is_set;
	double pct;
};

struct option_int {
	bool is_set;
	int64_t value;
};

struct option_duration {
	bool is_set;
	uint64_t ns;
};

struct option_devices {
	bool is_set;
	struct parse_devices devices;
};

struct option_row;

/* Parses `text` (NULL for a flag or an omitted value) into `field`, the option's field. */
typedef int option_parser(const struct option_row *row, const char *text, void *field,
			  struct error *err);

enum option_value {
	OPTION_VALUE_NONE,
	OPTION_VALUE_REQUIRED,
	OPTION_VALUE_NUMBER_OR_NONE, /* the next argument is the value if it begins with a digit */
};

struct option_row {
	const char *name; /* "--memory" */
	enum option_value value;
	const char *argument; /* the value's name in the help: "SIZE" */
	option_parser *parse;
	size_t offset;
	const char *help; /* lines separated by \n, at most 52 columns each */
	int64_t min, max; /* limits for option_int */
	/* values for completion, such as "fail wait"; option_choice accepts no others */
	const char *offered;
};

option_parser option_flag;     /* field: bool */
option_parser option_text;     /* field: const char *, into argv */
option_parser option_name;     /* field: const char *, into argv: a tenant's name */
option_parser option_size;     /* field: struct option_size */
option_parser option_percent;  /* field: struct option_percent */
option_parser option_int;      /* field: struct option_int */
option_parser option_duration; /* field: struct option_duration */
option_parser option_devices;  /* field: struct option_devices */
option_parser option_choice;   /* field: const char *, into argv */

/* Names of the built-in simulated GPUs, for `offered`. --sim accepts these names or a file. */
#define OPTION_SIM_SPECS "h200 h200x2 h200x8 dgx-1v dgx-a100 pcie mixed h200-mig"

#define OPTION(name_, value_, argument_, parse_, type, field, ...) \
	{ \
		.name = (name_), .value = (value_), .argument = (argument_), .parse = (parse_), \
		.offset = offsetof(type, field), __VA_ARGS__ \
	}
#define OPTION_END \
	{ \
		.name = NULL \
	}

enum option_order {
	OPTIONS_THEN_OPERANDS, /* the first operand ends the options */
	OPTIONS_ANYWHERE,
};

/*
 * Reads options into `values`, and moves the operands to the front of argv in their order; "--" ends the options. Returns the
 * number of operands, or -EINVAL or -ERANGE; the error names the option. "--help" sets *ret_help and ends the reading.
 */
int options_read(const struct option_row *rows, enum option_order order, int argc, char **argv,
		 void *values, bool *ret_help, struct error *err);

void options_print_help(const struct option_row *rows, FILE *out);

/* Returns the row of the option in `word`, which "=VALUE" may follow. Returns NULL if there is none. */
const struct option_row *options_find(const struct option_row *rows, const char *word);

/*
 * Returns the candidate that needs the fewest edits to become `text`, and so was probably meant. Returns NULL if it needs more
 * than two edits, or as many as it has characters. If `text` has more than three characters and begins a candidate ("--mem"
 * begins "--memory"), that counts as one edit. `next` returns the i-th candidate, and NULL after the last.
 */
const char *options_nearest(const char *text, const char *(*next)(const void *list, size_t i),
			    const void *list);
