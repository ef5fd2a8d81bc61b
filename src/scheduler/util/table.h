/*
 * Finds things by a text of theirs, however many there are: it grows with them. The entry is the first member of the thing,
 * so that a found entry is the thing. Nothing fails: without memory to grow it is only slower.
 *
 *     struct table { bucket[hash & mask] -> entry -> entry }
 *
 * A table of zeros is empty; table_free() leaves one. One thread.
 */
#ifndef ALLOT_SCHEDULER_UTIL_TABLE_H
#define ALLOT_SCHEDULER_UTIL_TABLE_H

#include <stddef.h>
#include <stdint.h>

struct table_entry {
	struct table_entry *next;
	const char *text; /* the thing's own, which stays as it is while it is in the table */
	uint32_t hash;
};

struct table {
	struct table_entry **bucket; /* owned; NULL: `first` is the only one */
	struct table_entry *first;
	size_t buckets, count;
};

/* No two with the same text. */
void table_add(struct table *table, struct table_entry *entry, const char *text);
void table_remove(struct table *table, struct table_entry *entry);
/* NULL: none. */
void *table_find(const struct table *table, const char *text);
/* Several at once, TABLE_SOME at most: of a large table faster than one after the other. */
#define TABLE_SOME 16
struct table_text {
	const char *text;
	size_t length;
};
void table_find_some(const struct table *table, const struct table_text *text, unsigned count,
		     void *ret[TABLE_SOME]);
/* Calls for each, which may take that one out of the table. */
void table_each(struct table *table, void (*each)(void *data, void *thing), void *data);
/* The things are the caller's. */
void table_free(struct table *table);

/* ---- words: texts that many things have, each kept once ---- */

/* The one that is kept, with a reference more. NULL: no memory. */
const char *word_take(struct table *words, const char *text);
/* The reference is given back; NULL is fine. */
void word_give(struct table *words, const char *word);

#endif
