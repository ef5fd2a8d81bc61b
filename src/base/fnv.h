/*
 * The hash FNV-1a (draft-eastlake-fnv). Not hardened: use it only where a user gains nothing by provoking collisions. The
 * library, which may not include src/base, has its own (library/memory/exports.c). Pure; thread safe.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define FNV64_BEGIN UINT64_C(14695981039346656037)

/* Extends `hash`, at first FNV64_BEGIN, by the bytes. */
static inline uint64_t fnv64(uint64_t hash, const void *bytes, size_t size)
{
	const unsigned char *byte = bytes;
	for (size_t i = 0; i < size; i++)
		hash = (hash ^ byte[i]) * UINT64_C(1099511628211);
	return hash;
}

static inline uint32_t fnv32(const void *bytes, size_t size)
{
	const unsigned char *byte = bytes;
	uint32_t hash = 2166136261U;
	for (size_t i = 0; i < size; i++)
		hash = (hash ^ byte[i]) * 16777619U;
	return hash;
}
