/*
 * Writes JSON as text, without a tree in between: a state of 200 tenants, four times a second. Pure; not thread
 * safe. Commas come by themselves. Out of memory is noted, not returned: everything may be called on, and
 * json_text_end() tells.
 *
 *     json_text_open(&t, NULL, '{');
 *     json_text_whole(&t, "index", 0);
 *     json_text_close(&t, '}');
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* All zero: an empty text. */
struct json_text {
	char *text;
	size_t used, size;
	bool failed;
};

/* `key` NULL: an element of a list, or the whole. It is written as it is: no character of it may need an escape. */
void json_text_open(struct json_text *t, const char *key, char bracket);
void json_text_close(struct json_text *t, char bracket);
/* NULL: null. Bytes that are no UTF-8, and control characters, become '?'. */
void json_text_string(struct json_text *t, const char *key, const char *value);
void json_text_whole(struct json_text *t, const char *key, int64_t value);
/* To two decimals. What is no number is null. */
void json_text_real(struct json_text *t, const char *key, double value);
void json_text_bool(struct json_text *t, const char *key, bool value);
void json_text_null(struct json_text *t, const char *key);
/* JSON as it is. */
void json_text_raw(struct json_text *t, const char *key, const char *json);

/* Bytes that are no JSON, such as what stands around it. */
void json_text_bytes(struct json_text *t, const char *bytes, size_t size);

/* The text, NUL-terminated and to be freed; NULL: out of memory. *t is empty afterwards. */
char *json_text_end(struct json_text *t);
