/*
 * Writes JSON as text, without building a tree first, because the state of 200 tenants is written four times a second. Adds
 * commas. If memory runs out, further calls do nothing, and json_text_end() reports it. No I/O; not thread safe.
 *
 *     json_text_open(&t, NULL, '{'); json_text_whole(&t, "index", 0); json_text_close(&t, '}');
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Zero the struct to start an empty text. */
struct json_text {
	char *text;
	size_t used, size;
	bool failed;
};

/*
 * `bracket` is that of an object ('{' and '}') or list ('[' and ']'). In all functions, `key` is the member's name, without
 * characters that need an escape; NULL for an element of a list or the outermost value.
 */
void json_text_open(struct json_text *t, const char *key, char bracket);
void json_text_close(struct json_text *t, char bracket);
/* null if `value` is NULL. Control characters and bytes that are not UTF-8 become '?'. */
void json_text_string(struct json_text *t, const char *key, const char *value);
void json_text_whole(struct json_text *t, const char *key, int64_t value);
/* At most two decimals; NaN, infinity and amounts above 1e15 become null. */
void json_text_real(struct json_text *t, const char *key, double value);
void json_text_bool(struct json_text *t, const char *key, bool value);
void json_text_null(struct json_text *t, const char *key);
void json_text_raw(struct json_text *t, const char *key, const char *json);

void json_text_bytes(struct json_text *t, const char *bytes, size_t size);

/* Returns the text with a NUL, to be freed by the caller, or NULL if out of memory. *t is empty afterwards. */
char *json_text_end(struct json_text *t);
