/*
 * The arguments of an extender call: a JSON object, and candidate nodes. Node names, perhaps five thousand, are most of the
 * text. So this parser reads the names itself, with one allocation for all, and a JSON library parses the rest. Invalid text is
 * rejected with the library's messages. Reference counted. Not thread-safe.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

struct call_name {
	const char *text; /* NUL-terminated; NULL if the value is no valid name */
	uint32_t length;
	bool is_plain; /* the name needs no JSON escapes */
};

struct call_args {
	unsigned references;
	json_t *object; /* the arguments; perhaps without NodeNames, since `name` has them; owned */
	/* list of Node objects, a part of `object`; NULL if there are none; if there are some, NodeNames is ignored */
	const json_t *whole;
	/* the call names nodes and sends no Node objects; a null list of names counts as empty */
	bool is_by_names;
	size_t count; /* number of nodes, in either form */
	struct call_name name[];
};

/* Returns 0, -ENOMEM, or -EINVAL if `text` is not valid JSON; `err` then says where. */
int call_args_read(const char *text, size_t size, struct call_args **ret, struct error *err);
/* Takes ownership of `object`, also on failure. Returns NULL if memory runs out. */
struct call_args *call_args_of(json_t *object);

struct call_args *call_args_get(struct call_args *args);
void call_args_put(struct call_args *args); /* `args` may be NULL */

/* Returns the names as a new list; NULL if memory runs out. */
json_t *call_args_names(const struct call_args *args);

/* Return the size of a name as a JSON string, and write that string (json_quote.h). An invalid name becomes "". */
size_t call_name_size(const struct call_name *name);
char *call_name_put(char *to, const struct call_name *name);
