/*
 * Computes 64-bit digests of texts by FNV-1a (draft-eastlake-fnv), to recognize a text without storing it. Pure; thread-safe.
 */
#pragma once

#include <stdint.h>

#define DIGEST_FIRST UINT64_C(14695981039346656037)

/* Extends `digest`, at first DIGEST_FIRST, by a text. NULL and "" give different digests. */
static inline uint64_t digest_add(uint64_t digest, const char *text)
{
	for (const char *c = text ? text : "\xff"; *c; c++)
		digest = (digest ^ (unsigned char)*c) * UINT64_C(1099511628211);
	return (digest ^ 0xfe) * UINT64_C(1099511628211);
}
