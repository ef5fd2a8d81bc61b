/*
 * A merge patch (RFC 7386) of an object's metadata: annotations and labels to set, or to take away, if
 * wished only while the object is of a certain version: else the server refuses with 409. Thread safe.
 */
#pragma once

#include <stddef.h>

struct patch_pair {
	const char *name;
	const char *value; /* NULL: to be taken away */
};

/* `version` NULL: of any. NULL: no memory, or a value is no UTF-8; to be freed by free(). */
char *patch_metadata(const struct patch_pair *annotation, size_t annotations,
		     const struct patch_pair *label, size_t labels, const char *version);
