/*
 * Hash map from a string to a structure, whose first member must be a struct string_map_entry. Grows as needed. Adding never
 * fails: without memory to grow, the map only becomes slower. A zeroed map is empty, as after string_map_free(). Not
 * thread-safe.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct string_map_entry {
	struct string_map_entry *next;
	/* a string of the structure; must not change while the entry is in the map */
	const char *text;
	uint32_t hash;
};

struct string_map {
	struct string_map_entry **bucket; /* owned; NULL: `first` is the only bucket */
	struct string_map_entry *first;
	size_t buckets, count;
};

/* Adds an entry for `text`. No two entries may have the same text. */
void string_map_add(struct string_map *table, struct string_map_entry *entry, const char *text);
void string_map_remove(struct string_map *table, struct string_map_entry *entry);
/* Returns the structure whose entry has this text, or NULL. */
void *string_map_find(const struct string_map *table, const char *text);
/* Finds up to STRING_MAP_SOME structures at once, which is faster in a large map. ret[i] is for text[i], or NULL. */
#define STRING_MAP_SOME 16
struct string_map_text {
	const char *text;
	size_t length;
};
void string_map_find_some(const struct string_map *table, const struct string_map_text *text,
			  unsigned count, void *ret[STRING_MAP_SOME]);
/* Calls `each` for every entry. `each` may remove that entry. */
void string_map_each(const struct string_map *table, void (*each)(void *data, void *thing),
		     void *data);
/* Frees the buckets, but not the structures. */
void string_map_free(struct string_map *table);

/* Interns `text`: equal strings are stored once. Returns the stored string and takes a reference; NULL if memory runs out. */
const char *intern(struct string_map *strings, const char *text);
/* Drops a reference; the last one frees the string. NULL is allowed. */
void intern_release(struct string_map *strings, const char *interned);
