/*
 * JSON that others wrote: the API server's objects, an engine's replies. Thread safe.
 *
 * Any user can put U+0000 into a pod, in an argument, an annotation or a termination message. jansson
 * refuses a whole list for it, or, where told to allow it, leaves strings that C code would read up to there
 * alone. It is read as U+FFFD instead: nothing is lost but that character, and no parser takes what is
 * before it for the whole.
 */
#pragma once

#include <jansson.h>
#include <stddef.h>

/*
 * `size` bytes of text; flags as for json_loadb(). NULL: it is no JSON, or there is no memory; ret_why, which may be NULL,
 * says which as after json_loadb().
 */
json_t *outside_json_read(const char *text, size_t size, size_t flags, json_error_t *ret_why);
