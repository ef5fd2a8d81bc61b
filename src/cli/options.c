#include "cli/options.h"

#include <errno.h>
#include <string.h>

#include "base/parse.h"

int option_flag(const struct option_row *row, const char *text, void *field, struct error *err)
{
	*(bool *)field = true;
	return 0;
}

int option_text(const struct option_row *row, const char *text, void *field, struct error *err)
{
	if (!*text)
		return error_set(err, EINVAL, "'': is empty; write %s", row->argument);
	*(const char **)field = text;
	return 0;
}

int option_name(const struct option_row *row, const char *text, void *field, struct error *err)
{
	int r = parse_name(text, err);

	if (r == 0)
		*(const char **)field = text;
	return r;
}

int option_size(const struct option_row *row, const char *text, void *field, struct error *err)
{
	struct option_size *size = field;
	int r = parse_size(text, &size->bytes, err);

	size->is_set = r == 0;
	return r;
}

int option_percent(const struct option_row *row, const char *text, void *field, struct error *err)
{
	struct option_percent *percent = field;
	int r = parse_cores(text, &percent->pct, err);

	percent->is_set = r == 0;
	return r;
}

int option_int(const struct option_row *row, const char *text, void *field, struct error *err)
{
	struct option_int *number = field;
	int r = parse_int(text, row->min, row->max, &number->value, err);

	number->is_set = r == 0;
	return r;
}

int option_duration(const struct option_row *row, const char *text, void *field, struct error *err)
{
	struct option_duration *duration = field;
	int r = text ? parse_duration(text, &duration->ns, err) : 0;

	duration->is_set = r == 0;
	return r;
}

int option_devices(const struct option_row *row, const char *text, void *field, struct error *err)
{
	struct option_devices *devices = field;
	int r = parse_devices(text, &devices->devices, err);

	devices->is_set = r == 0;
	return r;
}

static bool has_word(const char *list, const char *word)
{
	size_t length = strlen(word);

	for (const char *c = list; c && *c; c += strcspn(c, " ")) {
		c += strspn(c, " ");
		if (strcspn(c, " ") == length && length && memcmp(c, word, length) == 0)
			return true;
	}
	return false;
}

/* Turns "fail wait swap" into "fail, wait or swap". */
static void join_choices(const char *list, char *text, size_t size)
{
	size_t used = 0;

	for (const char *c = list; *c && used < size;) {
		size_t length = strcspn(c, " ");
		const char *next = c + length + strspn(c + length, " ");
		const char *before = c == list ? "" : *next ? ", " : " or ";

		used += (size_t)snprintf(text + used, size - used, "%s%.*s", before, (int)length, c);
		c = next;
	}
}

int option_choice(const struct option_row *row, const char *text, void *field, struct error *err)
{
	char choices[128];

	if (!has_word(row->offered, text)) {
		join_choices(row->offered, choices, sizeof(choices));
		return error_set(err, EINVAL, "'%.40s': must be %s", text, choices);
	}
	*(const char **)field = text;
	return 0;
}

#define NEAREST_LENGTH_MAX 31

/* Levenshtein distance; each word has at most NEAREST_LENGTH_MAX bytes. */
static size_t distance(const char *a, const char *b)
{
	size_t row[NEAREST_LENGTH_MAX + 2];
	size_t length = strlen(b);

	for (size_t j = 0; j <= length; j++)
		row[j] = j;
	for (size_t i = 1; a[i - 1]; i++) {
		size_t diagonal = row[0];

		row[0] = i;
		for (size_t j = 1; j <= length; j++) {
			size_t best = diagonal + (a[i - 1] != b[j - 1]);

			if (row[j] + 1 < best)
				best = row[j] + 1;
			if (row[j - 1] + 1 < best)
				best = row[j - 1] + 1;
			diagonal = row[j];
			row[j] = best;
		}
	}
	return row[length];
}

const char *options_nearest(const char *text, const char *(*next)(const void *list, size_t i),
			    const void *list)
{
	const char *nearest = NULL;
	size_t least = 3;
	const char *candidate;

	if (strlen(text) > NEAREST_LENGTH_MAX)
		return NULL;
	for (size_t i = 0; (candidate = next(list, i)); i++) {
		size_t prefix = strlen(text);
		size_t d;

		if (strlen(candidate) > NEAREST_LENGTH_MAX)
			continue;
		d = prefix > 3 && strncmp(candidate, text, prefix) == 0 ? 1
									: distance(text, candidate);
		if (d < least && d < strlen(candidate)) {
			least = d;
			nearest = candidate;
		}
	}
	return nearest;
}

static const char *row_name(const void *list, size_t i)
{
	const struct option_row *rows = list;

	return rows[i].name;
}

const struct option_row *options_find(const struct option_row *rows, const char *word)
{
	size_t length = strcspn(word, "=");

	for (const struct option_row *row = rows; row->name; row++)
		if (strlen(row->name) == length && memcmp(row->name, word, length) == 0)
			return row;
	return NULL;
}

static int refuse_unknown(const struct option_row *rows, const char *argument, struct error *err)
{
	char name[64];

	snprintf(name, sizeof(name), "%.*s", (int)strcspn(argument, "="), argument);
	const char *nearest = options_nearest(name, row_name, rows);
	if (nearest)
		return error_set(err, EINVAL, "%s: unknown option; did you mean %s?", name, nearest);
	return error_set(err, EINVAL, "%s: unknown option; --help lists the options", name);
}

/* Reads the option in argv[0]. Returns how many elements of argv the option takes, argv[0] included, or a negative error. */
static int read_one(const struct option_row *rows, int argc, char **argv, void *values,
		    struct error *err)
{
	size_t length = strcspn(argv[0], "=");
	const struct option_row *row = options_find(rows, argv[0]);
	const char *text = NULL;
	int taken = 1;
	int r;

	if (!row)
		return refuse_unknown(rows, argv[0], err);
	if (argv[0][length] == '=') {
		if (row->value == OPTION_VALUE_NONE)
			return error_set(err, EINVAL, "%s: takes no value", row->name);
		text = argv[0] + length + 1;
	} else if (row->value == OPTION_VALUE_REQUIRED) {
		if (argc < 2)
			return error_set(err, EINVAL, "%s: a value is missing; write %s %s",
					 row->name, row->name, row->argument);
		text = argv[1];
		taken = 2;
	} else if (row->value == OPTION_VALUE_NUMBER_OR_NONE && argc >= 2 && argv[1][0] >= '0' &&
		   argv[1][0] <= '9') {
		text = argv[1];
		taken = 2;
	}
	r = row->parse(row, text, (char *)values + row->offset, err);
	if (r < 0)
		return error_add(err, r, "%s", row->name);
	return taken;
}

int options_read(const struct option_row *rows, enum option_order order, int argc, char **argv,
		 void *values, bool *ret_help, struct error *err)
{
	int operands = 0;
	int i = 0;

	while (i < argc) {
		int taken;

		if (strcmp(argv[i], "--") == 0) {
			i++;
			break;
		}
		if (argv[i][0] != '-' || argv[i][1] == '\0') {
			if (order == OPTIONS_THEN_OPERANDS)
				break;
			argv[operands++] = argv[i++];
			continue;
		}
		if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0) {
			*ret_help = true;
			return 0;
		}
		taken = read_one(rows, argc - i, argv + i, values, err);
		if (taken < 0)
			return taken;
		i += taken;
	}
	while (i < argc)
		argv[operands++] = argv[i++];
	return operands;
}

#define HELP_COLUMN 26

void options_print_help(const struct option_row *rows, FILE *out)
{
	for (const struct option_row *row = rows; row->name; row++) {
		const char *line = row->help;
		int width = fprintf(out, "  %s%s%s", row->name, row->argument ? " " : "",
				    row->argument ? row->argument : "");

		if (width >= HELP_COLUMN) {
			fputc('\n', out);
			width = 0;
		}
		while (line) {
			const char *end = strchr(line, '\n');
			int length = end ? (int)(end - line) : (int)strlen(line);

			fprintf(out, "%*s%.*s\n", HELP_COLUMN - width, "", length, line);
			line = end ? end + 1 : NULL;
			width = 0;
		}
	}
}
