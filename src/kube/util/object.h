/* Reading of Kubernetes' objects. Pure. */
#pragma once

#include <jansson.h>

/* Returns the text metadata.KEY, which belongs to the object; NULL if there is none. `object` may be NULL. */
static inline const char *object_meta_text(const json_t *object, const char *key)
{
	return json_string_value(json_object_get(json_object_get(object, "metadata"), key));
}
