/*
 * Makes a merge patch (RFC 7386) that sets or removes annotations and labels. If the patch names a version and the object has
 * another version, the server answers 409. Thread safe.
 */
#pragma once

#include <stddef.h>

struct patch_pair {
	const char *name;
	const char *value; /* NULL removes the annotation or label */
};

/* The caller frees the JSON. `version` NULL allows any version. NULL if out of memory or if a value is not UTF-8. */
char *patch_metadata(const struct patch_pair *annotation, size_t annotations,
		     const struct patch_pair *label, size_t labels, const char *version);
