/* Texts, to be known again without being kept: FNV-1a of 64 bits (draft-eastlake-fnv). Pure; thread safe. */
#pragma once

#include <stdint.h>

#define DIGEST_FIRST UINT64_C(14695981039346656037)

/* One text after the other; NULL is another than "". */
static inline uint64_t digest_add(uint64_t digest, const char *text)
{
	for (const char *c = text ? text : "\xff"; *c; c++)
		digest = (digest ^ (unsigned char)*c) * UINT64_C(1099511628211);
	return (digest ^ 0xfe) * UINT64_C(1099511628211);
}
