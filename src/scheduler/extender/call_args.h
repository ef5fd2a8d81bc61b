/*
 * What came with a call of the extender: a JSON object, and the nodes that it is about. By names these are most of the text,
 * five thousand strings that nobody changes: they are taken as they stand, and a JSON library reads the rest. What it would
 * refuse of the whole is refused, in its words.
 *
 * As many as want it hold a reference. One thread.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

struct call_name {
	const char *text; /* a NUL stands behind it, and none in it; NULL: what came is no name */
	uint32_t length;
	bool is_plain; /* between quotes it is JSON as it is */
};

struct call_args {
	unsigned references;
	json_t *object;      /* what came; it may lack NodeNames, which are below. Owned */
	const json_t *whole; /* the object's: the nodes where they came whole, which go first */
	bool is_by_names;    /* else; a list that is null is an empty one */
	size_t count;        /* of nodes, however they came */
	struct call_name name[];
};

/* -EINVAL: `text` is no JSON, and where; -ENOMEM. */
int call_args_read(const char *text, size_t size, struct call_args **ret, struct error *err);
/* The same of what was read already. `object` is taken over in any case. NULL: no memory. */
struct call_args *call_args_of(json_t *object);

struct call_args *call_args_take(struct call_args *args);
void call_args_give(struct call_args *args); /* NULL is fine */

/* The names as a new list; NULL: no memory. */
json_t *call_args_names(const struct call_args *args);

/* A name as JSON: json_quote.h. "": what is no name. */
size_t call_name_size(const struct call_name *name);
char *call_name_put(char *to, const struct call_name *name);
