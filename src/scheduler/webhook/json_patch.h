/*
 * Changes to an object in JSON, written down as a JSON Patch (RFC 6902) while they are made. A failure of memory is kept, so
 * that it need be looked for only once. One thread.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

struct json_patch {
	json_t *operations; /* NULL: none yet */
	bool has_failed;    /* no memory: neither object nor patch are to be used */
	bool is_misshapen;  /* a member was of another type than it has to be: the same */
};

void json_patch_free(struct json_patch *patch);

/* `object`, which is at `path` of the whole, gets `value` by that name, in place of one that it may have. Takes `value` over. */
void json_patch_put(struct json_patch *patch, json_t *object, const char *path, const char *name,
		    json_t *value);
/* The member of that name is taken away. */
void json_patch_remove(struct json_patch *patch, json_t *object, const char *path, const char *name);
/* The list gets `value` at its end. Takes `value` over. */
void json_patch_append(struct json_patch *patch, json_t *list, const char *path, json_t *value);
void json_patch_remove_at(struct json_patch *patch, json_t *list, const char *path, size_t index);

/*
 * The member of that name; where there is none, `fresh` is put there. Takes `fresh` over. NULL: no memory, or it has
 * another type, which the patch remembers.
 */
json_t *json_patch_member(struct json_patch *patch, json_t *object, const char *path,
			  const char *name, json_t *fresh);

/* "path/name", by the rules for names with '/' or '~' inside. To be freed; NULL: no memory. */
char *json_patch_path(const char *path, const char *name);
