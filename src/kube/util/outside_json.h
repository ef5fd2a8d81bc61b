/*
 * Reads JSON that others wrote: objects of the API server, replies of a container engine. Thread
 * safe.
 *
 * Any user can put U+0000 into a pod, in an argument, an annotation or a termination message. By
 * default jansson rejects a whole list for that. If told to allow it, jansson returns strings that
 * C code reads only up to the NUL. This function reads U+0000 as U+FFFD: only that character is
 * lost, and no string is cut short.
 */
#pragma once

#include <jansson.h>
#include <stddef.h>

/*
 * Parses `size` bytes of text, with flags as for json_loadb(). Returns NULL if the text is not JSON
 * or out of memory; ret_why, which may be NULL, says which, as after json_loadb().
 */
json_t *outside_json_read(const char *text, size_t size, size_t flags, json_error_t *ret_why);
