/*
 * A hash table from texts to things. The number of buckets is fixed and fits a few thousand entries; with more, lookups become
 * slower. Each thing contains its entry, so nothing is allocated and nothing can fail. A zeroed index is empty. Use from one
 * thread at a time.
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

/* `text` must not move or change while `entry` is in the index. Two entries may have the same text. */
void text_index_add(struct text_index *index, struct text_index_entry *entry, const char *text,
		    void *thing);
/* Does nothing if `entry` is not in the index. */
void text_index_remove(struct text_index *index, struct text_index_entry *entry);
/* Returns the first added thing with that text, or NULL. */
void *text_index_find(const struct text_index *index, const char *text);
