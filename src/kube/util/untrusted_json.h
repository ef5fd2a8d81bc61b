/*
 * Parses JSON from untrusted sources: objects of the API server, replies of a container engine. Thread safe.
 *
 * Any user can put U+0000 into a pod, for example in an annotation. By default jansson rejects the whole text for that; if told
 * to allow U+0000, it returns strings that C code would read only up to the NUL. So U+0000 is replaced by U+FFFD, and no string
 * is cut short.
 */
#pragma once

#include <jansson.h>
#include <stddef.h>

/* `flags` are json_loadb()'s. NULL if the text is not JSON or memory ran out; *ret_why (may be NULL) says which. */
json_t *untrusted_json_parse(const char *text, size_t size, size_t flags, json_error_t *ret_why);
