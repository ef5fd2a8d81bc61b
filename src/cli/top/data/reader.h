/* Reads values from a large JSON text in place, much faster than by parsing the whole. Ends at invalid JSON. Pure. */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The part of a text that is one value, or a member's key with its quotes. An empty span (at == end) means no value. */
struct span {
	const char *at, *end;
};

/* Returns the whole text without leading blanks. */
struct span reader_whole(const char *text);

/*
 * Iterates over an object's members or an array's elements. At first, *rest is the whole object or array. Returns false after
 * the last element, or if *rest is of another type.
 *
 *     for (struct span rest = object; reader_member(&rest, &key, &value);)
 */
bool reader_member(struct span *rest, struct span *ret_key, struct span *ret_value);
bool reader_element(struct span *rest, struct span *ret_value);

/* Returns the member with this key, or an empty span if there is none. */
struct span reader_find(struct span object, const char *key);

/* reader_is_key() returns true if the span is exactly this key; reader_is(), if it is this literal, such as null or true. */
bool reader_is_key(struct span key, const char *name);
bool reader_is(struct span value, const char *word);

/* Reads a number. Returns false if the value is no finite number. */
bool reader_number(struct span value, double *ret);
/* Reads an integer, clamped to the range of int64_t. Returns false if the value is no integer. */
bool reader_whole_number(struct span value, int64_t *ret);

/* Copies a string up to the first control character or invalid UTF-8, cut to `size` bytes; "" if it is no string. */
void reader_text(struct span value, char *ret, size_t size);

/* Makes a tree of one value. Returns NULL if the value is no valid JSON or memory is out. The caller owns the tree. */
json_t *reader_tree(struct span value);
