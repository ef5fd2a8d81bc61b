/*
 * Changes a JSON object and records the changes as a JSON Patch (RFC 6902). Errors are remembered: check `has_failed` and
 * `misfit` once, after all changes. Not thread-safe.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#define JSON_PATCH_MISFIT_MAX 208

struct json_patch {
	json_t *operations; /* NULL before the first change */
	bool has_failed;    /* out of memory: do not use object and patch */
	/* first member of a wrong type ("/spec/containers: must be a list"), or ""; if set, use neither object nor patch */
	char misfit[JSON_PATCH_MISFIT_MAX];
};

void json_patch_free(struct json_patch *patch);

/* Adds or replaces the member `name` of `object`. `path`: the object's JSON Pointer. Takes ownership of `value`. */
void json_patch_put(struct json_patch *patch, json_t *object, const char *path, const char *name,
		    json_t *value);
void json_patch_remove(struct json_patch *patch, json_t *object, const char *path, const char *name);
/* Appends `value` to `list`. `path`: the list's JSON Pointer. Takes ownership of `value`. */
void json_patch_append(struct json_patch *patch, json_t *list, const char *path, json_t *value);
void json_patch_remove_at(struct json_patch *patch, json_t *list, const char *path, size_t index);

/* Returns member `name`; if missing, adds `fresh` (takes ownership). NULL if memory runs out or the member's type differs. */
json_t *json_patch_member(struct json_patch *patch, json_t *object, const char *path,
			  const char *name, json_t *fresh);
