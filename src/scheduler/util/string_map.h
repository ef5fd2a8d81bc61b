/*
 * Hash map from a string to a structure. The map grows with the number of entries. The entry is the first member of the
 * structure, so a pointer to the entry is a pointer to the structure. No function fails: if memory to grow is missing, the
 * map is only slower.
 *
 *     struct string_map { bucket[hash & mask] -> entry -> entry }
 *
 * A zeroed map is empty; string_map_free() leaves such a map. Not thread-safe.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct string_map_entry {
	struct string_map_entry *next;
	/* Belongs to the structure; must not change while the entry is in the map. */
	const char *text;
	uint32_t hash;
};

struct string_map {
	struct string_map_entry **bucket; /* owned; NULL while `first` is the only bucket */
	struct string_map_entry *first;
	size_t buckets, count;
};

/* Adds an entry. The map must not have an entry with the same text. */
void string_map_add(struct string_map *table, struct string_map_entry *entry, const char *text);
void string_map_remove(struct string_map *table, struct string_map_entry *entry);
/* Returns NULL if there is no such entry. */
void *string_map_find(const struct string_map *table, const char *text);
/* Finds up to STRING_MAP_SOME entries at once. In a large map, this is faster than several calls of string_map_find(). */
#define STRING_MAP_SOME 16
struct string_map_text {
	const char *text;
	size_t length;
};
void string_map_find_some(const struct string_map *table, const struct string_map_text *text,
			  unsigned count, void *ret[STRING_MAP_SOME]);
/* Calls `each` for every entry. The callback may remove this entry. */
void string_map_each(struct string_map *table, void (*each)(void *data, void *thing), void *data);
/* Frees the buckets. The structures still belong to the caller. */
void string_map_free(struct string_map *table);

/* ---- interned strings: strings that many structures share, each stored once ---- */

/* Returns the stored string and takes a reference. Returns NULL if memory runs out. */
const char *intern(struct string_map *words, const char *text);
/* Drops a reference. `word` may be NULL. */
void intern_release(struct string_map *words, const char *word);
