/*
 * For code that may run before libc is ready, or before a sanitizer's replacements of libc's functions are ready, as when
 * AddressSanitizer itself calls dlsym. The empty assembly keeps the compiler from turning the loops into calls of libc.
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
