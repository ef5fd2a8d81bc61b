#include "kube/util/untrusted_json.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

#define NUL "\\u0000"
#define REPLACEMENT "\\ufffd"
#define ESCAPE_SIZE (sizeof(NUL) - 1)

/*
 * Finds the next \u0000 that stands for U+0000. A backslash escapes the next character, which may be a backslash (RFC 8259,
 * section 7), so "\\u0000" is a backslash and "u0000".
 */
static const char *find_nul(const char *from, const char *end)
{
	while ((from = memchr(from, '\\', (size_t)(end - from))) && end - from >= 2) {
		if ((size_t)(end - from) >= ESCAPE_SIZE && memcmp(from, NUL, ESCAPE_SIZE) == 0)
			return from;
		from += 2;
	}
	return NULL;
}

json_t *untrusted_json_parse(const char *text, size_t size, size_t flags, json_error_t *ret_why)
{
	const char *end = text + size, *nul = find_nul(text, end);
	cleanup_free char *copy = NULL;
	if (nul) {
		copy = malloc(size);
		if (!copy) {
			if (ret_why) {
				*ret_why = (json_error_t){ .text = "out of memory" };
				/* jansson keeps the error's code here: json_error_code(). */
				ret_why->text[JSON_ERROR_TEXT_LENGTH - 1] =
					(char)json_error_out_of_memory;
			}
			return NULL;
		}
		memcpy(copy, text, size);
		/* Replacing U+0000 may make two keys equal, which must not be an error. */
		flags &= ~(size_t)JSON_REJECT_DUPLICATES;
	}
	for (; nul; nul = find_nul(nul + ESCAPE_SIZE, end))
		memcpy(copy + (nul - text), REPLACEMENT, ESCAPE_SIZE);
	return json_loadb(copy ? copy : text, size, flags, ret_why);
}
