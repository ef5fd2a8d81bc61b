#include "daemon/export/metrics/exposition.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FIRST_SIZE 16384
#define NUMBER_MAX 32
#define NSEC_PER_SEC UINT64_C(1000000000)

static const char *const type_names[] = {
	[EXPOSITION_GAUGE] = "gauge",
	[EXPOSITION_COUNTER] = "counter",
	[EXPOSITION_SUMMARY] = "summary",
};

const char *exposition_type_name(enum exposition_type type)
{
	return type_names[type];
}

/* Returns space for `bytes` more bytes; NULL if out of memory, now or in an earlier call. */
static char *reserve(struct exposition *x, size_t bytes)
{
	if (x->failed)
		return NULL;
	if (x->size - x->used < bytes) {
		size_t size = x->size ? x->size : FIRST_SIZE;
		while (size - x->used < bytes)
			size *= 2;
		char *text = realloc(x->text, size);
		if (!text) {
			x->failed = true;
			return NULL;
		}
		x->text = text;
		x->size = size;
	}
	return x->text + x->used;
}

static void add(struct exposition *x, const char *text, size_t length)
{
	char *at = reserve(x, length);
	if (!at)
		return;
	memcpy(at, text, length);
	x->used += length;
}

static void add_text(struct exposition *x, const char *text)
{
	add(x, text, strlen(text));
}

/* In a help text, the format escapes backslashes and newlines, but not quotation marks. */
static void add_help(struct exposition *x, const char *help)
{
	for (; *help; help++) {
		if (*help == '\\')
			add_text(x, "\\\\");
		else if (*help == '\n')
			add_text(x, "\\n");
		else
			add(x, help, 1);
	}
}

static void drop_without_samples(struct exposition *x)
{
	if (x->used == x->name_end)
		x->used = x->name_begin;
}

void exposition_family(struct exposition *x, const char *name, enum exposition_type type,
		       const char *help)
{
	drop_without_samples(x);
	x->name_begin = x->used;
	add_text(x, "# HELP ");
	add_text(x, name);
	add_text(x, " ");
	add_help(x, help);
	add_text(x, "\n# TYPE ");
	add_text(x, name);
	add_text(x, " ");
	add_text(x, type_names[type]);
	add_text(x, "\n");
	x->name_end = x->used;
}

static void add_sample(struct exposition *x, const char *name, const char *labels,
		       const char *number)
{
	size_t name_length = strlen(name), labels_length = strlen(labels), n = strlen(number);
	char *at = reserve(x, name_length + labels_length + n + 4);
	if (!at)
		return;
	char *begin = at;
	memcpy(at, name, name_length);
	at += name_length;
	if (labels_length) {
		*at++ = '{';
		memcpy(at, labels, labels_length);
		at += labels_length;
		*at++ = '}';
	}
	*at++ = ' ';
	memcpy(at, number, n);
	at += n;
	*at++ = '\n';
	x->used += (size_t)(at - begin);
}

/* Writes digits that end at `end`; returns their start. printf would take half the time of a page with thousands of numbers. */
static char *write_digits(char *end, uint64_t value)
{
	do {
		*--end = (char)('0' + value % 10);
		value /= 10;
	} while (value);
	return end;
}

void exposition_whole(struct exposition *x, const char *name, const char *labels, uint64_t value)
{
	char number[NUMBER_MAX];
	number[NUMBER_MAX - 1] = '\0';
	add_sample(x, name, labels, write_digits(number + NUMBER_MAX - 1, value));
}

void exposition_seconds(struct exposition *x, const char *name, const char *labels, uint64_t ns)
{
	char number[NUMBER_MAX + 11], *end = number + NUMBER_MAX;
	uint64_t part = ns % NSEC_PER_SEC;
	*end = '\0';
	if (part) {
		*end++ = '.';
		for (unsigned i = 9; i-- > 0; part /= 10)
			end[i] = (char)('0' + part % 10);
		for (end += 9; end[-1] == '0';)
			end--;
		*end = '\0';
	}
	add_sample(x, name, labels, write_digits(number + NUMBER_MAX, ns / NSEC_PER_SEC));
}

void exposition_real(struct exposition *x, const char *name, const char *labels, double value)
{
	char number[NUMBER_MAX];
	if (isnan(value))
		strcpy(number, "NaN");
	else if (isinf(value))
		strcpy(number, value > 0 ? "+Inf" : "-Inf");
	else
		snprintf(number, sizeof(number), "%.9g", value);
	add_sample(x, name, labels, number);
}

/* Returns the length of the UTF-8 character at `c`, or 0 if malformed, overlong or a surrogate. */
static size_t character_length(const unsigned char *c)
{
	size_t length = c[0] < 0x80 ? 1 : c[0] < 0xc2 ? 0 : c[0] < 0xe0 ? 2 : c[0] < 0xf0 ? 3 : 4;
	if (c[0] > 0xf4)
		return 0;
	for (size_t i = 1; i < length; i++)
		if ((c[i] & 0xc0) != 0x80)
			return 0;
	if ((c[0] == 0xe0 && c[1] < 0xa0) || (c[0] == 0xed && c[1] >= 0xa0) ||
	    (c[0] == 0xf0 && c[1] < 0x90) || (c[0] == 0xf4 && c[1] >= 0x90))
		return 0;
	return length;
}

/* Writes the next character of *value, escaped, and advances *value. Returns the number of bytes written. */
static size_t escape(const char **value, char to[4])
{
	size_t length = character_length((const unsigned char *)*value);
	char c = length ? **value : '?';
	if (c == '"' || c == '\\' || c == '\n') {
		to[0] = '\\';
		to[1] = c == '\n' ? 'n' : c;
		++*value;
		return 2;
	}
	if (length <= 1) {
		to[0] = c;
		++*value;
		return 1;
	}
	memcpy(to, *value, length);
	*value += length;
	return length;
}

void exposition_label(char *text, size_t size, const char *key, const char *value)
{
	size_t used = strlen(text);
	size_t key_length = strlen(key);
	/* There must be room for a comma, an equals sign, two quotation marks and the NUL. */
	if (size - used < key_length + 5)
		return;
	if (used)
		text[used++] = ',';
	memcpy(text + used, key, key_length);
	used += key_length;
	text[used++] = '=';
	text[used++] = '"';
	while (*value) {
		char to[4];
		size_t n = escape(&value, to);
		if (size - used < n + 2)
			break;
		memcpy(text + used, to, n);
		used += n;
	}
	text[used++] = '"';
	text[used] = '\0';
}

int exposition_end(struct exposition *x, char **ret_text, size_t *ret_length)
{
	drop_without_samples(x);
	int r = x->failed || !reserve(x, 1) ? -ENOMEM : 0;
	if (r < 0) {
		free(x->text);
	} else {
		x->text[x->used] = '\0';
		*ret_text = x->text;
		*ret_length = x->used;
	}
	*x = (struct exposition){ 0 };
	return r;
}
