/*
 * The arguments of an extender call: a JSON object and the candidate nodes. Node names may be most of the text, for example
 * five thousand strings. So this parser reads the names itself, in place, and a JSON library parses the rest. The parser
 * rejects whatever the library would reject, with the same messages.
 *
 * Reference counted. Not thread-safe.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

struct call_name {
	const char *text; /* NUL-terminated, with no NUL inside; NULL if the value is not a valid name */
	uint32_t length;
	bool is_plain; /* needs no JSON escapes */
};

struct call_args {
	unsigned references;
	json_t *object;      /* the arguments; may lack NodeNames, which are in `name`. Owned */
	const json_t *whole; /* part of `object`: whole Node objects, if sent; they take precedence */
	bool is_by_names;    /* there are no whole nodes; a null list counts as empty */
	size_t count;        /* number of nodes, in either form */
	struct call_name name[];
};

/* Parses the arguments. Returns 0, -ENOMEM, or -EINVAL if `text` is not valid JSON; err then says where. */
int call_args_read(const char *text, size_t size, struct call_args **ret, struct error *err);
/* Makes arguments from parsed JSON. Always takes ownership of `object`. Returns NULL if memory runs out. */
struct call_args *call_args_of(json_t *object);

struct call_args *call_args_take(struct call_args *args);
void call_args_give(struct call_args *args); /* `args` may be NULL */

/* Returns the names as a new list, or NULL if memory runs out. */
json_t *call_args_names(const struct call_args *args);

/* Return the size of a name as a JSON string, and write that string, as in json_quote.h. An invalid name is written as "". */
size_t call_name_size(const struct call_name *name);
char *call_name_put(char *to, const struct call_name *name);
