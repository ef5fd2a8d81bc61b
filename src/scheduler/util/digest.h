/*
 * Computes 64-bit digests of texts by FNV-1a, to recognize a text without storing it. Pure; thread-safe.
 */
#pragma once

#include <stdint.h>
#include <string.h>

#include "base/fnv.h"

#define DIGEST_FIRST FNV64_BEGIN

/* Extends `digest`, at first DIGEST_FIRST, by a text. NULL and "" give different digests. */
static inline uint64_t digest_add(uint64_t digest, const char *text)
{
	if (!text)
		text = "\xff";
	return fnv64(fnv64(digest, text, strlen(text)), "\xfe", 1);
}
