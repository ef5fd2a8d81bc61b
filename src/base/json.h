/* Helpers for jansson's objects. Pure; thread safe. */
#pragma once

#include <jansson.h>

#include "base/cleanup.h"

static inline void cleanup_json_decref(json_t **json)
{
	json_decref(*json);
}
#define cleanup_json cleanup(cleanup_json_decref)

/* The member's string, owned by `object`; `otherwise` if the member is absent or no string. `object` may be NULL. */
static inline const char *json_string_or(const json_t *object, const char *key,
					 const char *otherwise)
{
	const char *text = json_string_value(json_object_get(object, key));
	return text ? text : otherwise;
}
