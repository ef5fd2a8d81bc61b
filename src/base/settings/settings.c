#include "base/settings/settings.h"

#include <ctype.h>
#include <errno.h>
#include <fnmatch.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/parse.h"
#include "base/text.h"

#define FILE_MAX 65536
#define LINE_MAX_BYTES 1024
#define MIB (UINT64_C(1) << 20)

static int set_text(const struct settings_row *row, char *field, const char *value,
		    struct error *err)
{
	if (row->kind == SETTINGS_PLACE && *value != '/' && strcmp(value, row->default_text) != 0)
		return error_set(err, EINVAL, "'%.60s': must be %s, or a full path", value,
				 row->default_text);
	if (!*value || strlen(value) >= SETTINGS_TEXT_MAX)
		return error_set(err, EINVAL, "'%.40s': must be 1 to %d bytes", value,
				 SETTINGS_TEXT_MAX - 1);
	int r = text_check(value, err);
	if (r >= 0 && row->check)
		r = row->check(value, err);
	if (r < 0)
		return r;
	strcpy(field, value);
	return 0;
}

static int find_word(const char *const *words, const char *value, struct error *err)
{
	char names[128] = "";
	for (int i = 0; words[i]; i++) {
		size_t n = strlen(names);
		if (!strcmp(words[i], value))
			return i;
		snprintf(names + n, sizeof(names) - n, "%s%s",
			 !i             ? ""
			 : words[i + 1] ? ", "
					: " or ",
			 words[i]);
	}
	return error_set(err, EINVAL, "'%.40s': must be %s", value, names);
}

static int set_count(const struct settings_row *row, unsigned *field, const char *value,
		     struct error *err)
{
	int64_t number;
	int r = parse_int(value, (int64_t)row->min, (int64_t)row->max, &number, err);
	if (r >= 0)
		*field = (unsigned)number;
	return r < 0 ? r : 0;
}

void settings_format(const struct settings_row *row, uint64_t value, char *text, size_t size)
{
	if (row->kind == SETTINGS_PERCENT)
		snprintf(text, size, "%g", (double)value / SETTINGS_PERCENT_BOUND(1));
	else if (row->kind == SETTINGS_SIZE)
		snprintf(text, size, "%" PRIu64 "%s", value % MIB ? value / 1024 : value / MIB,
			 value % MIB ? "KiB" : "MiB");
	else if (value % NSEC_PER_SEC == 0)
		snprintf(text, size, "%" PRIu64 "s", value / NSEC_PER_SEC);
	else if (value % NSEC_PER_MSEC == 0)
		snprintf(text, size, "%" PRIu64 "ms", value / NSEC_PER_MSEC);
	else
		snprintf(text, size, "%" PRIu64 "us", value / NSEC_PER_USEC);
}

static int range_error(const struct settings_row *row, const char *value, struct error *err)
{
	char low[32], high[32];
	settings_format(row, row->min, low, sizeof(low));
	settings_format(row, row->max, high, sizeof(high));
	return error_set(err, ERANGE, "'%.40s': must be from %s to %s", value, low, high);
}

static bool is_unit(const struct settings_row *row, const char *text)
{
	char one[16];
	uint64_t number;
	double pct;
	snprintf(one, sizeof(one), "1%.14s", text);
	if (row->kind == SETTINGS_SIZE)
		return parse_size(one, &number, NULL) >= 0;
	if (row->kind == SETTINGS_DURATION)
		return parse_duration(one, &number, NULL) >= 0;
	return parse_percent(one, &pct, NULL) >= 0;
}

/* Accepts a zero with or without a unit if row->min is 0. parse_size() and similar parsers refuse every zero. */
static bool is_allowed_zero(const struct settings_row *row, const char *value)
{
	size_t digits = row->min ? 0 : strspn(value, "0");
	size_t decimals = value[digits] == '.' ? strspn(value + digits + 1, "0") : 0;
	const char *unit = value + digits + (decimals ? 1 + decimals : 0);
	return digits && (!*unit || (!strchr("0123456789.", *unit) && is_unit(row, unit)));
}

static bool is_automatic(const struct settings_row *row, const char *value)
{
	return row->default_text && !strcmp(row->default_text, "auto") && !strcmp(value, "auto");
}

static int set_amount(const struct settings_row *row, uint64_t *field, const char *value,
		      struct error *err)
{
	uint64_t number = 0;
	int r = 0;
	if (is_automatic(row, value)) {
		*field = (uint64_t)row->automatic;
		return 0;
	}
	if (!is_allowed_zero(row, value))
		r = row->kind == SETTINGS_SIZE ? parse_size(value, &number, err)
					       : parse_duration(value, &number, err);
	if (r < 0)
		return r;
	if (number < row->min || number > row->max)
		return range_error(row, value, err);
	*field = number;
	return 0;
}

static int set_percent(const struct settings_row *row, double *field, const char *value,
		       struct error *err)
{
	double pct = 0;
	int r = is_allowed_zero(row, value) ? 0 : parse_percent(value, &pct, err);
	if (r < 0)
		return r;
	double bound = pct * SETTINGS_PERCENT_BOUND(1);
	if (bound < (double)row->min || bound > (double)row->max)
		return range_error(row, value, err);
	*field = pct;
	return 0;
}

static int set_number(const struct settings_row *row, double *field, const char *value,
		      struct error *err)
{
	double number = row->automatic;
	int r = is_automatic(row, value)
			? 0
			: parse_number(value, (double)row->min, (double)row->max, &number, err);
	if (r >= 0 && row->check)
		r = row->check(value, err);
	if (r >= 0)
		*field = number;
	return r;
}

static const char *const switch_words[] = { "on", "off", NULL };

static int set_row(const struct settings_row *row, struct config *config, const char *value,
		   struct error *err)
{
	void *field = (char *)config + row->offset;
	int r = -EINVAL;
	switch (row->kind) {
	case SETTINGS_TEXT:
	case SETTINGS_PLACE: return set_text(row, field, value, err);
	case SETTINGS_SWITCH:
		r = find_word(switch_words, value, err);
		if (r >= 0)
			*(bool *)field = r == 0;
		break;
	case SETTINGS_EITHER:
		r = find_word(row->words, value, err);
		if (r >= 0)
			*(bool *)field = r == 1;
		break;
	case SETTINGS_CHOICE:
		r = row->check ? row->check(value, err) : 0;
		if (r >= 0)
			r = find_word(row->words, value, err);
		if (r >= 0)
			*(unsigned *)field = (unsigned)r;
		break;
	case SETTINGS_COUNT: return set_count(row, field, value, err);
	case SETTINGS_SIZE:
	case SETTINGS_DURATION: return set_amount(row, field, value, err);
	case SETTINGS_PERCENT: return set_percent(row, field, value, err);
	case SETTINGS_NUMBER: return set_number(row, field, value, err);
	}
	return r < 0 ? r : 0;
}

const struct settings_row *settings_find(const struct settings_table *table, const char *name)
{
	for (size_t i = 0; i < table->count; i++)
		if (!strcmp(table->row[i].name, name))
			return &table->row[i];
	return NULL;
}

const char *settings_name(const struct settings_table *table, size_t index, bool *ret_is_switch)
{
	*ret_is_switch = false;
	if (index < table->count)
		return table->row[index].name;
	index -= table->count;
	for (const struct settings_alias *a = table->alias; a && a->name; a++)
		if (index-- == 0) {
			*ret_is_switch = a->is_switch;
			return a->name;
		}
	return NULL;
}

static bool is_alias(const char *name, const char *key)
{
	for (; *name && *key; name++, key++)
		if ((*name == '-' ? '_' : *name) != (*key == '-' ? '_' : *key))
			return false;
	return !*name && !*key;
}

static const char *alias_requirement(const struct settings_alias *alias)
{
	return alias->must ? alias->must : "allot has no such setting";
}

static int set_alias(const struct settings_table *table, const struct settings_alias *alias,
		     struct config *config, const char *key, const char *value, struct error *err)
{
	char text[SETTINGS_TEXT_MAX];
	int r = alias->translate ? alias->translate(config, value, text, err)
		: alias->setting ? settings_put(text, err, "%s", value)
				 : -EINVAL;
	if (r < 0 && !alias->setting)
		return error_set(err, EINVAL, "%s: '%.60s': %s: %s", key, value,
				 alias_requirement(alias), alias->why);
	if (r >= 0 && alias->setting && (*text || !alias->translate))
		r = settings_set(table, config, alias->setting, text, err);
	return r < 0 ? error_add(err, r, "%s", key) : 0;
}

int settings_set(const struct settings_table *table, struct config *config, const char *key,
		 const char *value, struct error *err)
{
	const struct settings_row *row = settings_find(table, key);
	if (row) {
		int r = set_row(row, config, value, err);
		return r < 0 ? error_add(err, r, "%s", key) : 0;
	}
	for (const struct settings_alias *a = table->alias; a && a->name; a++)
		if (is_alias(a->name, key))
			return set_alias(table, a, config, key, value, err);
	if (table->unknown)
		return table->unknown(key, err);
	return error_set(err, ENOENT, "%.60s: there is no such setting", key);
}

void settings_default(const struct settings_table *table, struct config *config)
{
	/* Ignore errors: they mean that a row rejects its own default, which unit tests find. */
	for (size_t i = 0; i < table->count; i++)
		if (table->row[i].default_text)
			set_row(&table->row[i], config, table->row[i].default_text, NULL);
}

unsigned settings_check_all(const struct settings_table *table, const struct config *config,
			    const char *where, settings_complain complain, void *data)
{
	unsigned bad = 0;
	for (const settings_check *check = table->check; check && *check; check++) {
		struct error err = { 0 };
		int r = (*check)(config, &err);
		if (r >= 0)
			continue;
		error_add(&err, r, "%s", where);
		complain(data, err.text);
		bad++;
	}
	return bad;
}

void settings_format_default(const struct settings_row *row, const struct config *defaults,
			     char *text, size_t size)
{
	const void *field = (const char *)defaults + row->offset;
	const char *word = row->default_text;
	if (!word)
		switch (row->kind) {
		case SETTINGS_TEXT:
		case SETTINGS_PLACE: word = field; break;
		case SETTINGS_SWITCH: word = switch_words[*(const bool *)field ? 0 : 1]; break;
		case SETTINGS_EITHER: word = row->words[*(const bool *)field ? 1 : 0]; break;
		case SETTINGS_CHOICE: word = row->words[*(const unsigned *)field]; break;
		case SETTINGS_COUNT: snprintf(text, size, "%u", *(const unsigned *)field); break;
		case SETTINGS_SIZE:
		case SETTINGS_DURATION:
			settings_format(row, *(const uint64_t *)field, text, size);
			break;
		case SETTINGS_PERCENT:
		case SETTINGS_NUMBER: snprintf(text, size, "%g", *(const double *)field); break;
		}
	if (word)
		snprintf(text, size, "%s", word);
}

void settings_print_help(const struct settings_table *table, const struct config *defaults,
			 FILE *out)
{
	for (size_t i = 0; i < table->count; i++) {
		char value[SETTINGS_TEXT_MAX];
		settings_format_default(&table->row[i], defaults, value, sizeof(value));
		fprintf(out, "  %-24s %-26s %s\n", table->row[i].name, value, table->row[i].help);
	}
}

void settings_print_aliases(const struct settings_table *table, FILE *out)
{
	for (const struct settings_alias *a = table->alias; a && a->name; a++)
		fprintf(out, "  %-37s %s%s%s\n", a->name,
			a->setting ? a->setting
			: a->must  ? a->must
				   : "refused",
			!a->setting ? ": "
			: a->why    ? ", "
				    : "",
			a->why ? a->why : "");
}

int settings_put(char ret[SETTINGS_TEXT_MAX], struct error *err, const char *format, ...)
{
	va_list ap;
	va_start(ap, format);
	int n = vsnprintf(ret, SETTINGS_TEXT_MAX, format, ap);
	va_end(ap);
	return n < SETTINGS_TEXT_MAX
		       ? 0
		       : error_set(err, EINVAL, "must be at most %d bytes", SETTINGS_TEXT_MAX - 1);
}

static char *trim(char *text)
{
	while (isspace((unsigned char)*text))
		text++;
	size_t n = strlen(text);
	while (n > 0 && isspace((unsigned char)text[n - 1]))
		text[--n] = '\0';
	return text;
}

bool settings_list_matches(const char *patterns, const char *text)
{
	char list[SETTINGS_TEXT_MAX], *save = NULL;
	snprintf(list, sizeof(list), "%s", patterns);
	for (char *p = strtok_r(list, ",", &save); p; p = strtok_r(NULL, ",", &save)) {
		p = trim(p);
		if (*p && fnmatch(p, text, 0) == 0)
			return true;
	}
	return false;
}

int settings_parse_bool(const char *value, struct error *err)
{
	static const char *const words[] = { "false", "true", "False", "True", "FALSE", "TRUE", "f",
					     "t",     "F",    "T",     "0",    "1",     "off",  "on" };
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (!strcmp(value, words[i]))
			return i % 2;
	return error_set(err, EINVAL, "'%.60s': must be true or false", value);
}

static int parse_line(const struct settings_table *table, struct config *config, char *line,
		      struct error *err)
{
	char *comment = strchr(line, '#');
	if (comment)
		*comment = '\0';
	line = trim(line);
	if (!*line)
		return 0;
	char *equals = strchr(line, '=');
	if (!equals)
		return error_set(err, EINVAL, "%.60s: must be 'key = value'", line);
	*equals = '\0';
	return settings_set(table, config, trim(line), trim(equals + 1), err);
}

unsigned settings_parse(const struct settings_table *table, struct config *config, const char *file,
			const char *text, settings_complain complain, void *data)
{
	unsigned bad = 0, number = 0;
	struct error err = { 0 };
	while (*text) {
		size_t length = strcspn(text, "\n");
		char line[LINE_MAX_BYTES];
		int r;
		number++;
		if (length >= sizeof(line)) {
			r = error_set(&err, EINVAL, "line longer than %zu bytes", sizeof(line) - 1);
		} else {
			memcpy(line, text, length);
			line[length] = '\0';
			r = parse_line(table, config, line, &err);
		}
		if (r < 0) {
			bad++;
			error_add(&err, r, "%s:%u", file, number);
			complain(data, err.text);
		}
		text += length + (text[length] == '\n');
	}
	return bad;
}

int settings_load(const struct settings_table *table, struct config *config, const char *file,
		  settings_complain complain, void *data, struct error *err)
{
	cleanup_file FILE *f = fopen(file, "re");
	if (!f)
		return error_set_errno(err, errno, "%s", file);
	cleanup_free char *text = malloc(FILE_MAX + 1);
	if (!text)
		return error_set_errno(err, ENOMEM, "%s", file);
	size_t n = fread(text, 1, FILE_MAX + 1, f);
	if (ferror(f))
		return error_set_errno(err, errno ? errno : EIO, "%s", file);
	if (n > FILE_MAX)
		return error_set(err, EFBIG, "%s: longer than %d bytes", file, FILE_MAX);
	if (memchr(text, '\0', n))
		return error_set(err, EINVAL, "%s: not a text file", file);
	text[n] = '\0';
	return (int)settings_parse(table, config, file, text, complain, data);
}
