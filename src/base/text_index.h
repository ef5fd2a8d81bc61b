/*
 * A hash table from texts to things. The number of buckets is fixed and fits a few thousand entries; with more, lookups become
 * slower. Each thing contains its entry, so nothing is allocated and nothing can fail.
 *
 *     struct text_index { bucket[hash % N] } -> entry -> entry (entry.text points into the thing)
 *
 * A zeroed index is empty. Use from one thread at a time.
 */
#pragma once

#include <stdint.h>

#define TEXT_INDEX_BUCKETS 1024

struct text_index_entry {
	struct text_index_entry *next;
	const char *text;
	void *thing;
	uint32_t hash;
};

struct text_index {
	struct text_index_entry *bucket[TEXT_INDEX_BUCKETS];
};

/*
 * Adds `entry`, for `thing`. `text` must not move or change while it is in the index. Two entries may have the same text: see
 * text_index_find().
 */
void text_index_add(struct text_index *index, struct text_index_entry *entry, const char *text,
		    void *thing);
/* Removes `entry`. Does nothing if it is not in the index. */
void text_index_remove(struct text_index *index, struct text_index_entry *entry);
/* Returns the thing with that text; if there are several, the one that was added first. NULL if there is none. */
void *text_index_find(const struct text_index *index, const char *text);
