#include "scheduler/util/string_map.h"

#include <stdlib.h>
#include <string.h>

#include "base/fnv.h"

#define BUCKETS_FIRST 64

/* FNV-1a with higher bits mixed into the low bits, which select the bucket. */
static uint32_t hash_of(const char *text, size_t length)
{
	uint32_t hash = fnv32(text, length);
	return hash ^ hash >> 15;
}

static struct string_map_entry **bucket_of(const struct string_map *t, uint32_t hash)
{
	return t->bucket ? &t->bucket[hash & (t->buckets - 1)]
			 : (struct string_map_entry **)(uintptr_t)&t->first;
}

static void grow(struct string_map *t)
{
	size_t buckets = t->bucket ? t->buckets * 2 : BUCKETS_FIRST;
	struct string_map_entry **bucket = calloc(buckets, sizeof(*bucket));
	if (!bucket)
		return;
	for (size_t i = 0; i < (t->bucket ? t->buckets : 1); i++) {
		struct string_map_entry *next, *e = t->bucket ? t->bucket[i] : t->first;
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

void string_map_add(struct string_map *t, struct string_map_entry *entry, const char *text)
{
	if (t->count >= t->buckets)
		grow(t);
	uint32_t hash = hash_of(text, strlen(text));
	struct string_map_entry **bucket = bucket_of(t, hash);
	*entry = (struct string_map_entry){ .next = *bucket, .text = text, .hash = hash };
	*bucket = entry;
	t->count++;
}

void string_map_remove(struct string_map *t, struct string_map_entry *entry)
{
	struct string_map_entry **at = bucket_of(t, entry->hash);
	while (*at && *at != entry)
		at = &(*at)->next;
	if (*at) {
		*at = entry->next;
		t->count--;
	}
}

static struct string_map_entry *find_from(struct string_map_entry *e, uint32_t hash,
					  const char *text, size_t length)
{
	while (e && (e->hash != hash || strncmp(e->text, text, length) != 0 || e->text[length]))
		e = e->next;
	return e;
}

void *string_map_find(const struct string_map *t, const char *text)
{
	size_t length = strlen(text);
	uint32_t hash = hash_of(text, length);
	return find_from(*bucket_of(t, hash), hash, text, length);
}

/* Each loop prefetches what the next loop reads. */
void string_map_find_some(const struct string_map *t, const struct string_map_text *text,
			  unsigned count, void *ret[STRING_MAP_SOME])
{
	uint32_t hash[STRING_MAP_SOME];
	struct string_map_entry *first[STRING_MAP_SOME];
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

void string_map_each(const struct string_map *t, void (*each)(void *data, void *thing), void *data)
{
	for (size_t i = 0; i < (t->bucket ? t->buckets : 1); i++) {
		struct string_map_entry *next, *e = t->bucket ? t->bucket[i] : t->first;
		for (; e; e = next) {
			next = e->next;
			each(data, e);
		}
	}
}

void string_map_free(struct string_map *t)
{
	free(t->bucket);
	*t = (struct string_map){ 0 };
}

struct interned {
	struct string_map_entry entry;
	size_t references;
	char text[];
};

const char *intern(struct string_map *strings, const char *text)
{
	struct interned *interned = string_map_find(strings, text);
	if (!interned) {
		size_t size = strlen(text) + 1;
		interned = malloc(sizeof(*interned) + size);
		if (!interned)
			return NULL;
		interned->references = 0;
		memcpy(interned->text, text, size);
		string_map_add(strings, &interned->entry, interned->text);
	}
	interned->references++;
	return interned->text;
}

void intern_release(struct string_map *strings, const char *text)
{
	if (!text)
		return;
	struct interned *interned = (struct interned *)(uintptr_t)(text -
								   offsetof(struct interned, text));
	if (--interned->references)
		return;
	string_map_remove(strings, &interned->entry);
	free(interned);
}
