/* Between the parts of the daemon's settings: config.c has the rows of settings, config_tuning.c those of tuning,
 * config_value.c the kinds of values, config_file.c the lines of a file. */
#ifndef ALLOT_DAEMON_CONFIG_CONFIG_INSIDE_H
#define ALLOT_DAEMON_CONFIG_CONFIG_INSIDE_H

#include <stddef.h>
#include <stdint.h>

#include "base/clock.h"
#include "base/error.h"

struct config;

enum setting_kind {
	KIND_DURATION,
	KIND_SIZE,
	KIND_PERCENT,
	KIND_SWITCH,
	KIND_LEVEL,
	KIND_TEXT,
	KIND_PLACE,   /* a full path, or the word that is its default */
	KIND_ADDRESS, /* see http/address.h */
	KIND_ENGINES, /* a text that engines_parse() takes */
	KIND_NAMES,   /* ... that metrics_names_parse() takes */
	KIND_XIDS,    /* ... that health_parse_ignored() takes */
	KIND_GAIN,
	KIND_COUNT,  /* an unsigned */
	KIND_FACTOR, /* a double above 0 */
	KIND_OVERCOMMIT,
	KIND_CHARGE,
	KIND_LIMIT,
	/* One of some names, whose place is the value: see config_value.c. */
	KIND_POLICY,
	KIND_CONTROL,
	KIND_SENSOR,
	KIND_ON_VIOLATION,
	KIND_SHARING,
	KIND_SPACE_CAPS,
	KIND_VOCABULARY,
};

/* `default_text` is NULL where the arbiter or its elastic policy has the default. */
struct setting {
	const char *name;
	enum setting_kind kind;
	size_t offset;
	const char *default_text;
	uint64_t min, max; /* nanoseconds, bytes, SETTING_PCT, or whole numbers */
	const char *help;
};

struct setting_table {
	const struct setting *row;
	size_t count;
};

extern const struct setting_table config_tuning;
/* By enum config_table. */
extern const struct setting_table *const setting_tables[];

/* Percents have bounds in hundredths. */
#define SETTING_PCT(n) ((n)*100)

/* For rows. */
#define AT(field) offsetof(struct config, field)
#define MIB (UINT64_C(1) << 20)
#define GIB (UINT64_C(1) << 30)
#define US(n) ((n)*NSEC_PER_USEC)
#define MS(n) ((n)*NSEC_PER_MSEC)
#define S(n) ((n)*NSEC_PER_SEC)
#define PCT(n) SETTING_PCT(n)

/* NULL: the table has none of that name. */
const struct setting *setting_find(const struct setting_table *table, const char *name);
/* Sets its field of *config; on error that is unchanged and the error says what would be right. */
int setting_set(const struct setting *s, struct config *config, const char *value,
		struct error *err);
/* A number of its kind in words: 32 bytes are enough. */
void setting_format(const struct setting *s, uint64_t value, char *text, size_t size);
/* CONFIG_PATH_MAX bytes are enough. */
void setting_format_default(const struct setting *s, char *text, size_t size);

#endif
