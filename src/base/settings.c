#include "base/settings.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/parse.h"
#include "base/text.h"

#define FILE_MAX 65536
#define LINE_MAX_BYTES 1024
#define MIB (UINT64_C(1) << 20)
#define NS_A_MS UINT64_C(1000000)
#define NS_A_S UINT64_C(1000000000)

/* ---- values ---- */

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

static int set_switch(bool *field, const char *value, struct error *err)
{
	if (strcmp(value, "on") != 0 && strcmp(value, "off") != 0)
		return error_set(err, EINVAL, "'%.40s': must be on or off", value);
	*field = !strcmp(value, "on");
	return 0;
}

static int set_choice(const struct settings_row *row, unsigned *field, const char *value,
		      struct error *err)
{
	char names[128] = "";
	for (unsigned i = 0; row->words[i]; i++) {
		size_t n = strlen(names);
		if (!strcmp(row->words[i], value)) {
			*field = i;
			return 0;
		}
		snprintf(names + n, sizeof(names) - n, "%s%s",
			 !i                  ? ""
			 : row->words[i + 1] ? ", "
					     : " or ",
			 row->words[i]);
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

static void format(const struct settings_row *row, uint64_t value, char *text, size_t size)
{
	if (row->kind == SETTINGS_SIZE)
		snprintf(text, size, "%" PRIu64 "%s", value % MIB ? value / 1024 : value / MIB,
			 value % MIB ? "KiB" : "MiB");
	else if (value % NS_A_S)
		snprintf(text, size, "%" PRIu64 "ms", value / NS_A_MS);
	else
		snprintf(text, size, "%" PRIu64 "s", value / NS_A_S);
}

static int set_amount(const struct settings_row *row, uint64_t *field, const char *value,
		      struct error *err)
{
	char low[32], high[32];
	uint64_t number = 0;
	int r = 0;
	if (row->min || strcmp(value, "0") != 0)
		r = row->kind == SETTINGS_SIZE ? parse_size(value, &number, err)
					       : parse_duration(value, &number, err);
	if (r < 0)
		return r;
	if (number < row->min || number > row->max) {
		format(row, row->min, low, sizeof(low));
		format(row, row->max, high, sizeof(high));
		return error_set(err, ERANGE, "'%.40s': must be from %s to %s", value, low, high);
	}
	*field = number;
	return 0;
}

static int set_row(const struct settings_row *row, void *config, const char *value,
		   struct error *err)
{
	void *field = (char *)config + row->offset;
	switch (row->kind) {
	case SETTINGS_TEXT:
	case SETTINGS_PLACE: return set_text(row, field, value, err);
	case SETTINGS_SWITCH: return set_switch(field, value, err);
	case SETTINGS_CHOICE: return set_choice(row, field, value, err);
	case SETTINGS_COUNT: return set_count(row, field, value, err);
	case SETTINGS_SIZE:
	case SETTINGS_DURATION: return set_amount(row, field, value, err);
	}
	return error_set(err, EINVAL, "setting of unknown kind");
}

int settings_set(const struct settings_table *table, void *config, const char *key,
		 const char *value, struct error *err)
{
	for (size_t i = 0; i < table->count; i++) {
		int r;
		if (strcmp(table->row[i].name, key) != 0)
			continue;
		r = set_row(&table->row[i], config, value, err);
		return r < 0 ? error_add(err, r, "%s", key) : 0;
	}
	int r = table->foreign ? table->foreign(config, key, value, err) : -ENOENT;
	if (r != -ENOENT)
		return r;
	return error_set(err, ENOENT, "%.60s: there is no such setting", key);
}

void settings_default(const struct settings_table *table, void *config)
{
	/* A default that its own row refuses is a fault of the table: the unit tests look for it. */
	for (size_t i = 0; i < table->count; i++)
		set_row(&table->row[i], config, table->row[i].default_text, NULL);
}

void settings_print_help(const struct settings_table *table, FILE *out)
{
	for (size_t i = 0; i < table->count; i++)
		fprintf(out, "  %-24s %-26s %s\n", table->row[i].name, table->row[i].default_text,
			table->row[i].help);
}

/* ---- the lines of a file ---- */

/* Cuts white space off both ends, in place. */
static char *trim(char *text)
{
	while (isspace((unsigned char)*text))
		text++;
	size_t n = strlen(text);
	while (n > 0 && isspace((unsigned char)text[n - 1]))
		text[--n] = '\0';
	return text;
}

static int parse_line(const struct settings_table *table, void *config, char *line,
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

unsigned settings_parse(const struct settings_table *table, void *config, const char *file,
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
	int r = table->check ? table->check(config, &err) : 0;
	if (r < 0) {
		bad++;
		error_add(&err, r, "%s", file);
		complain(data, err.text);
	}
	return bad;
}

int settings_load(const struct settings_table *table, void *config, const char *file,
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
