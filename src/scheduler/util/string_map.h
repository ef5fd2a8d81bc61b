/*
 * Finds things by a text of theirs, however many there are: it grows with them. The entry is the first member of the thing,
 * so that a found entry is the thing. Nothing fails: without memory to grow it is only slower.
 *
 *     struct string_map { bucket[hash & mask] -> entry -> entry }
 *
 * A table of zeros is empty; string_map_free() leaves one. One thread.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct string_map_entry {
	struct string_map_entry *next;
	const char *text; /* the thing's own, which stays as it is while it is in the table */
	uint32_t hash;
};

struct string_map {
	struct string_map_entry **bucket; /* owned; NULL: `first` is the only one */
	struct string_map_entry *first;
	size_t buckets, count;
};

/* No two with the same text. */
void string_map_add(struct string_map *table, struct string_map_entry *entry, const char *text);
void string_map_remove(struct string_map *table, struct string_map_entry *entry);
/* NULL: none. */
void *string_map_find(const struct string_map *table, const char *text);
/* Several at once, STRING_MAP_SOME at most: of a large table faster than one after the other. */
#define STRING_MAP_SOME 16
struct string_map_text {
	const char *text;
	size_t length;
};
void string_map_find_some(const struct string_map *table, const struct string_map_text *text,
			  unsigned count, void *ret[STRING_MAP_SOME]);
/* Calls for each, which may take that one out of the table. */
void string_map_each(struct string_map *table, void (*each)(void *data, void *thing), void *data);
/* The things are the caller's. */
void string_map_free(struct string_map *table);

/* ---- words: texts that many things have, each kept once ---- */

/* The one that is kept, with a reference more. NULL: no memory. */
const char *intern(struct string_map *words, const char *text);
/* The reference is given back; NULL is fine. */
void intern_release(struct string_map *words, const char *word);
