#include "scheduler/util/table.h"

#include <stdlib.h>
#include <string.h>

#define BUCKETS_FIRST 64

/* FNV-1a (draft-eastlake-fnv), and what mixes its low bits, by which a bucket is found. */
static uint32_t hash_of(const char *text, size_t length)
{
	uint32_t hash = 2166136261U;
	for (size_t i = 0; i < length; i++)
		hash = (hash ^ (unsigned char)text[i]) * 16777619U;
	return hash ^ hash >> 15;
}

static struct table_entry **bucket_of(const struct table *t, uint32_t hash)
{
	return t->bucket ? &t->bucket[hash & (t->buckets - 1)]
			 : (struct table_entry **)(uintptr_t)&t->first;
}

static void grow(struct table *t)
{
	size_t buckets = t->bucket ? t->buckets * 2 : BUCKETS_FIRST;
	struct table_entry **bucket = calloc(buckets, sizeof(*bucket));
	if (!bucket)
		return;
	for (size_t i = 0; i < (t->bucket ? t->buckets : 1); i++) {
		struct table_entry *next, *e = t->bucket ? t->bucket[i] : t->first;
		for (; e; e = next) {
			next = e->next;
			e->next = bucket[e->hash & (buckets - 1)];
			bucket[e->hash & (buckets - 1)] = e;
		}
	}
	free(t->bucket);
	t->bucket = bucket;
	t->buckets = buckets;
	t->first = NULL;
}

void table_add(struct table *t, struct table_entry *entry, const char *text)
{
	if (t->count >= t->buckets)
		grow(t);
	uint32_t hash = hash_of(text, strlen(text));
	struct table_entry **bucket = bucket_of(t, hash);
	*entry = (struct table_entry){ .next = *bucket, .text = text, .hash = hash };
	*bucket = entry;
	t->count++;
}

void table_remove(struct table *t, struct table_entry *entry)
{
	struct table_entry **at = bucket_of(t, entry->hash);
	while (*at && *at != entry)
		at = &(*at)->next;
	if (*at) {
		*at = entry->next;
		t->count--;
	}
}

/* From that one of a bucket on. */
static struct table_entry *find_from(struct table_entry *e, uint32_t hash, const char *text,
				     size_t length)
{
	while (e && (e->hash != hash || strncmp(e->text, text, length) != 0 || e->text[length]))
		e = e->next;
	return e;
}

void *table_find(const struct table *t, const char *text)
{
	size_t length = strlen(text);
	uint32_t hash = hash_of(text, length);
	return find_from(*bucket_of(t, hash), hash, text, length);
}

/* In steps that each ask for the memory which the next one looks at. */
void table_find_some(const struct table *t, const struct table_text *text, unsigned count,
		     void *ret[TABLE_SOME])
{
	uint32_t hash[TABLE_SOME];
	struct table_entry *first[TABLE_SOME];
	for (unsigned i = 0; i < count; i++) {
		hash[i] = hash_of(text[i].text, text[i].length);
		__builtin_prefetch(bucket_of(t, hash[i]));
	}
	for (unsigned i = 0; i < count; i++) {
		first[i] = *bucket_of(t, hash[i]);
		__builtin_prefetch(first[i]);
	}
	for (unsigned i = 0; i < count; i++)
		if (first[i])
			__builtin_prefetch(first[i]->text);
	for (unsigned i = 0; i < count; i++)
		ret[i] = find_from(first[i], hash[i], text[i].text, text[i].length);
}

void table_each(struct table *t, void (*each)(void *data, void *thing), void *data)
{
	for (size_t i = 0; i < (t->bucket ? t->buckets : 1); i++) {
		struct table_entry *next, *e = t->bucket ? t->bucket[i] : t->first;
		for (; e; e = next) {
			next = e->next;
			each(data, e);
		}
	}
}

void table_free(struct table *t)
{
	free(t->bucket);
	*t = (struct table){ 0 };
}

/* ---- words ---- */

struct word {
	struct table_entry entry;
	size_t references;
	char text[];
};

const char *word_take(struct table *words, const char *text)
{
	struct word *word = table_find(words, text);
	if (!word) {
		size_t size = strlen(text) + 1;
		word = malloc(sizeof(*word) + size);
		if (!word)
			return NULL;
		word->references = 0;
		memcpy(word->text, text, size);
		table_add(words, &word->entry, word->text);
	}
	word->references++;
	return word->text;
}

void word_give(struct table *words, const char *text)
{
	if (!text)
		return;
	struct word *word = (struct word *)(uintptr_t)(text - offsetof(struct word, text));
	if (--word->references)
		return;
	table_remove(words, &word->entry);
	free(word);
}
