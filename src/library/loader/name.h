/* Names of driver functions, by base name and by hash. Used by the library and, at build time, by make_names.c. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "library/sys/text.h"

static inline bool name_is_form_mark(const char *text)
{
	if (text[0] != '_')
		return false;
	return (text[1] == 'v' && text[2] >= '0' && text[2] <= '9') || text_equal(text, "_ptsz") ||
	       text_equal(text, "_ptds");
}

/* The length without _vN, _ptsz and _ptds, which all forms of a name share: "cuMemcpy_v2_ptds" is a form of "cuMemcpy". */
static inline size_t name_base_length(const char *name)
{
	size_t length = 0;

	while (name[length] && !name_is_form_mark(name + length))
		length++;
	return length;
}

/* As in a GNU hash table (DT_GNU_HASH). */
static inline uint32_t name_gnu_hash(const char *name)
{
	uint32_t hash = 5381;

	for (const unsigned char *c = (const unsigned char *)name; *c; c++)
		hash = hash * 33 + *c;
	return hash;
}

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "name_length() is written for little-endian machines"
#endif

static inline uint64_t name_load64(const char *at)
{
	uint64_t value;

	memcpy(&value, at, sizeof(value));
	return value;
}

/*
 * As strlen(). Reads aligned 8-byte words, which never cross into a page without part of the string. libc's strlen is not used:
 * the loader would bind it on its first call, which costs as much as 100 lookups.
 */
static inline size_t name_length(const char *text)
{
	const uint64_t ones = 0x0101010101010101ULL, highs = 0x8080808080808080ULL;
	const char *word = text - (uintptr_t)text % 8;
	/* Makes the bytes before the text nonzero, so that none counts as the end. (The lowest byte comes first.) */
	uint64_t w = name_load64(word) | ~(~0ULL << (uintptr_t)text % 8 * 8);

	while (!((w - ones) & ~w & highs))
		w = name_load64(word += 8);
	return (size_t)(word - text) + (size_t)__builtin_ctzll((w - ones) & ~w & highs) / 8;
}

/*
 * Hashes eight characters at a time; the last eight may overlap earlier ones. make_names.c checks that hashes of known names
 * differ. Of other names, about one pair in 2^52 has the same hash.
 */
static inline uint64_t name_hash(const char *name, size_t length)
{
	const uint64_t odd = 0x9e3779b97f4a7c15ULL;
	uint64_t h = length, last = 0;
	size_t i = 0;

	for (; i + 8 < length; i += 8)
		h = (h ^ name_load64(name + i)) * odd;
	if (length >= 8) {
		last = name_load64(name + length - 8);
	} else {
		for (; i < length; i++) {
			last = last << 8 | (unsigned char)name[i];
			__asm__ volatile(""); /* keeps the compiler from calling libc (text.h) */
		}
	}
	h = (h ^ last) * odd;
	h = (h ^ h >> 32) * odd;
	return h ^ h >> 29;
}
