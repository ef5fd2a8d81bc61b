/*
 * A manifest: which libraries may be put into containers, by their SHA-256. The lines are those that sha256sum makes:
 *
 *     allot-manifest 1
 *     3fa1...(64 digits)  liballot.so
 *
 * The first line says what it is; '#' begins a comment line. A name may be there several times, as for a library and the
 * one that follows it. Pure; thread safe.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

#define SHA256_BYTES 32
#define MANIFEST_MAX_ENTRIES 64
#define MANIFEST_NAME_MAX 64

struct manifest {
	unsigned count;
	struct manifest_entry {
		uint8_t sha256[SHA256_BYTES];
		char name[MANIFEST_NAME_MAX];
	} entry[MANIFEST_MAX_ENTRIES];
};

/* `size` bytes of text, NUL behind them. -EINVAL with the line and what would be right. */
int manifest_parse(const char *text, size_t size, struct manifest *ret, struct error *err);
bool manifest_has(const struct manifest *manifest, const char *name,
		  const uint8_t sha256[SHA256_BYTES]);
/* In hexadecimal digits. */
void manifest_format(const uint8_t sha256[SHA256_BYTES], char ret[2 * SHA256_BYTES + 1]);
