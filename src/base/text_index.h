/*
 * Finds things by a text that each of them has: so many chains that a few thousand are found at once, and as much slower
 * with more. Nothing is allocated, so nothing fails: the entry is a part of the thing.
 *
 *     struct text_index { bucket[hash % N] } -> entry -> entry      entry.text: the thing's own
 *
 * An index of zeros is empty. One thread at a time.
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

/* The text must stay where it is, and as it is, while it is in the index. Two may have the same: see text_index_find(). */
void text_index_add(struct text_index *index, struct text_index_entry *entry, const char *text,
		    void *thing);
/* An entry that is not in it is fine. */
void text_index_remove(struct text_index *index, struct text_index_entry *entry);
/* The thing that was added first of those with that text. NULL: none. */
void *text_index_find(const struct text_index *index, const char *text);
