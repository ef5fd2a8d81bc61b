/*
 * Names of the driver's functions, as the tables of names have them: by base and by hash. For the library
 * and for make_names.c, which makes one of its tables at build time.
 */
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

/*
 * How long the part of a name is that its forms share: "cuMemcpy_v2_ptds" is a form of "cuMemcpy". A
 * form is marked by _vN, _ptsz or _ptds.
 */
static inline size_t name_base_length(const char *name)
{
	size_t length = 0;

	while (name[length] && !name_is_form_mark(name + length))
		length++;
	return length;
}

/* As a GNU hash table has it (DT_GNU_HASH). */
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
 * A string's length, by whole words: none of them reaches into another page than the string. (The first
 * call of libc's own would be bound by the loader, at the cost of 100 look-ups.)
 */
static inline size_t name_length(const char *text)
{
	const uint64_t ones = 0x0101010101010101ULL, highs = 0x8080808080808080ULL;
	const char *word = text - (uintptr_t)text % 8;
	/* What is before the text is no end of it. (The lowest byte is the first.) */
	uint64_t w = name_load64(word) | ~(~0ULL << (uintptr_t)text % 8 * 8);

	while (!((w - ones) & ~w & highs))
		w = name_load64(word += 8);
	return (size_t)(word - text) + (size_t)__builtin_ctzll((w - ones) & ~w & highs) / 8;
}

/*
 * Eight characters at a time; the last eight may overlap others. Any two names that differ are taken to
 * differ in it: make_names.c sees to it for those that are known, and for any other pair it fails once in
 * 2^52, as a table keeps no more of it.
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
			__asm__ volatile(""); /* as text.h says */
		}
	}
	h = (h ^ last) * odd;
	h = (h ^ h >> 32) * odd;
	return h ^ h >> 29;
}
