#include "scheduler/webhook/json_patch.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

void json_patch_free(struct json_patch *patch)
{
	json_decref(patch->operations);
	*patch = (struct json_patch){ 0 };
}

/* Returns "path/name" with '/' and '~' in the name escaped (RFC 6901). The caller frees it; NULL if memory runs out. */
static char *append_name(const char *path, const char *name)
{
	char *text = malloc(strlen(path) + 2 * strlen(name) + 2);
	if (!text)
		return NULL;
	char *at = stpcpy(text, path);
	*at++ = '/';
	for (; *name; name++) {
		if (*name == '~' || *name == '/') {
			*at++ = '~';
			*at++ = *name == '~' ? '0' : '1';
		} else {
			*at++ = *name;
		}
	}
	*at = '\0';
	return text;
}

static void note(struct json_patch *patch, const char *operation, const char *path,
		 const char *name, json_t *value)
{
	cleanup_free char *where = append_name(path, name);
	if (!patch->operations)
		patch->operations = json_array();
	json_t *entry = where ? json_pack("{s:s,s:s,s:o*}", "op", operation, "path", where, "value",
					  json_incref(value))
			      : NULL;
	if (!entry || json_array_append_new(patch->operations, entry) < 0)
		patch->has_failed = true;
}

/* Records a copy of the value, because later changes inside the value are operations of their own. */
static void note_copy(struct json_patch *patch, const char *path, const char *name, json_t *value)
{
	json_t *copy = json_deep_copy(value);
	if (copy)
		note(patch, "add", path, name, copy);
	else
		patch->has_failed = true;
	json_decref(copy);
}

void json_patch_put(struct json_patch *patch, json_t *object, const char *path, const char *name,
		    json_t *value)
{
	note_copy(patch, path, name, value);
	if (json_object_set_new(object, name, value) < 0)
		patch->has_failed = true;
}

void json_patch_remove(struct json_patch *patch, json_t *object, const char *path, const char *name)
{
	note(patch, "remove", path, name, NULL);
	json_object_del(object, name);
}

void json_patch_append(struct json_patch *patch, json_t *list, const char *path, json_t *value)
{
	note_copy(patch, path, "-", value);
	if (json_array_append_new(list, value) < 0)
		patch->has_failed = true;
}

void json_patch_remove_at(struct json_patch *patch, json_t *list, const char *path, size_t index)
{
	char name[24];
	snprintf(name, sizeof(name), "%zu", index);
	note(patch, "remove", path, name, NULL);
	json_array_remove(list, index);
}

json_t *json_patch_member(struct json_patch *patch, json_t *object, const char *path,
			  const char *name, json_t *fresh)
{
	json_t *member = json_object_get(object, name);
	if (member && !json_is_null(member)) {
		bool fits = fresh && json_typeof(member) == json_typeof(fresh);
		if (fresh && !fits && !*patch->misfit)
			snprintf(patch->misfit, sizeof(patch->misfit), "%.150s/%.30s: must be %s",
				 path, name, json_is_array(fresh) ? "a list" : "an object");
		patch->has_failed |= !fresh;
		json_decref(fresh);
		return fits ? member : NULL;
	}
	json_patch_put(patch, object, path, name, fresh);
	return json_object_get(object, name);
}
