#include "http/dashboard/json_text.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"

#define FIRST_BYTES ((size_t)4096)
#define DIGITS_MAX 24
#define REAL_MOST 1e15 /* above this, a double is too coarse for two decimals */

static bool make_room(struct json_text *t, size_t size)
{
	size_t room = t->size ? t->size : FIRST_BYTES;
	if (t->failed)
		return false;
	if (t->used + size + 1 <= t->size)
		return true;
	while (room < t->used + size + 1)
		room *= 2;
	char *text = realloc(t->text, room);
	if (!text) {
		t->failed = true;
		return false;
	}
	t->text = text;
	t->size = room;
	return true;
}

void json_text_bytes(struct json_text *t, const char *bytes, size_t size)
{
	if (!make_room(t, size))
		return;
	memcpy(t->text + t->used, bytes, size);
	t->used += size;
	t->text[t->used] = '\0';
}

static void add_key(struct json_text *t, const char *key)
{
	if (t->used && !strchr("{[ ", t->text[t->used - 1]))
		json_text_bytes(t, ",", 1);
	if (!key)
		return;
	json_text_bytes(t, "\"", 1);
	json_text_bytes(t, key, strlen(key));
	json_text_bytes(t, "\":", 2);
}

void json_text_open(struct json_text *t, const char *key, char bracket)
{
	add_key(t, key);
	json_text_bytes(t, &bracket, 1);
}

void json_text_close(struct json_text *t, char bracket)
{
	json_text_bytes(t, &bracket, 1);
}

void json_text_raw(struct json_text *t, const char *key, const char *json)
{
	add_key(t, key);
	json_text_bytes(t, json, strlen(json));
}

void json_text_null(struct json_text *t, const char *key)
{
	json_text_raw(t, key, "null");
}

void json_text_bool(struct json_text *t, const char *key, bool value)
{
	json_text_raw(t, key, value ? "true" : "false");
}

void json_text_string(struct json_text *t, const char *key, const char *value)
{
	if (!value) {
		json_text_null(t, key);
		return;
	}
	add_key(t, key);
	json_text_bytes(t, "\"", 1);
	while (*value) {
		const char *end = text_clean_prefix_end(value, strlen(value));
		size_t plain = strcspn(value, "\"\\");
		size_t size = (size_t)(end - value) < plain ? (size_t)(end - value) : plain;
		json_text_bytes(t, value, size);
		value += size;
		if (value == end && *value) {
			json_text_bytes(t, "?", 1);
			value++;
		} else if (*value) {
			json_text_bytes(t, "\\", 1);
			json_text_bytes(t, value++, 1);
		}
	}
	json_text_bytes(t, "\"", 1);
}

/* Writes digits so that they end at `end`; returns their start. */
static char *write_digits(char *end, uint64_t value)
{
	do
		*--end = (char)('0' + value % 10);
	while (value /= 10);
	return end;
}

void json_text_whole(struct json_text *t, const char *key, int64_t value)
{
	char digits[DIGITS_MAX], *end = digits + sizeof(digits);
	char *begin = write_digits(end, value < 0 ? 0 - (uint64_t)value : (uint64_t)value);
	if (value < 0)
		*--begin = '-';
	add_key(t, key);
	json_text_bytes(t, begin, (size_t)(end - begin));
}

void json_text_real(struct json_text *t, const char *key, double value)
{
	char digits[DIGITS_MAX], *end = digits + sizeof(digits);
	if (!isfinite(value) || fabs(value) > REAL_MOST) {
		json_text_null(t, key);
		return;
	}
	uint64_t hundredths = (uint64_t)(fabs(value) * 100 + 0.5), part = hundredths % 100;
	char *begin = end;
	if (part) {
		if (part % 10)
			*--begin = (char)('0' + part % 10);
		*--begin = (char)('0' + part / 10);
		*--begin = '.';
	}
	begin = write_digits(begin, hundredths / 100);
	if (value < 0 && hundredths)
		*--begin = '-';
	add_key(t, key);
	json_text_bytes(t, begin, (size_t)(end - begin));
}

char *json_text_end(struct json_text *t)
{
	char *text = t->text;
	if (t->failed) {
		free(text);
		text = NULL;
	}
	*t = (struct json_text){ 0 };
	return text;
}
