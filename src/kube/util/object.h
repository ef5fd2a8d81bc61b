/* Automatic cleanup of jansson's objects, like base/cleanup.h. */
#pragma once

#include <jansson.h>

#include "base/cleanup.h"

static inline void cleanup_object_decref(json_t **object)
{
	json_decref(*object);
}
#define cleanup_object cleanup(cleanup_object_decref)
