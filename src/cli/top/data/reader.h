/*
 * Reads a large JSON text in place. A list of 200 tenants has a quarter of a MiB, of which a live view needs a third,
 * several times a second: making a tree of all of it takes ten times as long. Whoever needs more than plain values
 * makes a tree of the part (reader_tree()). Pure; what is no JSON ends where it stops being it.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A part of a text that is one value, or the key of a member with its quotes. Of none: at == end. */
struct span {
	const char *at, *end;
};

/* The whole text, without the blanks at its beginning. */
struct span reader_whole(const char *text);

/*
 * The members of an object, or the elements of an array, one after the other: *rest is the whole value at first. False
 * after the last one, and where it is no object or array.
 *
 *     for (struct span rest = object; reader_member(&rest, &key, &value);)
 */
bool reader_member(struct span *rest, struct span *ret_key, struct span *ret_value);
bool reader_element(struct span *rest, struct span *ret_value);

/* A member by its key; an empty span: there is none. */
struct span reader_find(struct span object, const char *key);

/* Is it exactly this key, or this word (null, true)? */
bool reader_is_key(struct span key, const char *name);
bool reader_is(struct span value, const char *word);

/* A number that is finite, or false. */
bool reader_number(struct span value, double *ret);
/* An integer without a fraction, cut to what fits, or false. */
bool reader_whole_number(struct span value, int64_t *ret);

/* A string, cut to size between characters and without control characters; "" where it is none. */
void reader_text(struct span value, char *ret, size_t size);

/* A tree of one value; NULL: it is no JSON, or out of memory. The caller owns it. */
json_t *reader_tree(struct span value);
