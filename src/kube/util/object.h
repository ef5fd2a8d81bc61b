/* Cleanup of jansson's objects, as base/cleanup.h has it for others. */
#pragma once

#include <jansson.h>

#include "base/cleanup.h"

static inline void cleanup_object_decref(json_t **object)
{
	json_decref(*object);
}
#define cleanup_object cleanup(cleanup_object_decref)
