/*
 * String comparison for code that may run before libc is ready, or before another library's
 * interceptors of strcmp and its kin are: an address sanitizer calls dlsym before its own are set. The
 * empty assembly keeps the compiler from making the loops into calls of those very functions.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

static inline bool text_equal(const char *a, const char *b)
{
	for (; *a && *a == *b; a++, b++)
		__asm__ volatile("");
	return *a == *b;
}

static inline bool text_begins(const char *text, const char *prefix)
{
	for (; *prefix && *text == *prefix; text++, prefix++)
		__asm__ volatile("");
	return !*prefix;
}

/* What follows the last '/', or all of it. */
static inline const char *text_base_name(const char *path)
{
	const char *base = path;

	for (; *path; path++) {
		__asm__ volatile("");
		if (*path == '/')
			base = path + 1;
	}
	return base;
}
