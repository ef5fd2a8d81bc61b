#include "base/text_index.h"

#include <stddef.h>
#include <string.h>

#include "base/fnv.h"

static struct text_index_entry **end_of(struct text_index *index, uint32_t hash)
{
	struct text_index_entry **at = &index->bucket[hash % TEXT_INDEX_BUCKETS];
	while (*at)
		at = &(*at)->next;
	return at;
}

void text_index_add(struct text_index *index, struct text_index_entry *entry, const char *text,
		    void *thing)
{
	*entry = (struct text_index_entry){ .text = text,
					    .thing = thing,
					    .hash = fnv32(text, strlen(text)) };
	*end_of(index, entry->hash) = entry;
}

void text_index_remove(struct text_index *index, struct text_index_entry *entry)
{
	struct text_index_entry **at = &index->bucket[entry->hash % TEXT_INDEX_BUCKETS];
	while (*at && *at != entry)
		at = &(*at)->next;
	if (*at)
		*at = entry->next;
}

void *text_index_find(const struct text_index *index, const char *text)
{
	uint32_t hash = fnv32(text, strlen(text));
	const struct text_index_entry *e = index->bucket[hash % TEXT_INDEX_BUCKETS];
	while (e && (e->hash != hash || strcmp(e->text, text) != 0))
		e = e->next;
	return e ? e->thing : NULL;
}
