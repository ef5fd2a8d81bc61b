/* Cleanup of jansson's objects, as base/cleanup.h has it for others. */
#ifndef ALLOT_KUBE_UTIL_OBJECT_H
#define ALLOT_KUBE_UTIL_OBJECT_H

#include <jansson.h>

#include "base/cleanup.h"

static inline void cleanup_object_decref(json_t **object)
{
	json_decref(*object);
}
#define cleanup_object cleanup(cleanup_object_decref)

#endif
