/*
 * A manifest has the SHA-256 hashes of the libraries that may be put into containers. The lines have the format of sha256sum:
 *
 *     allot-manifest 1
 *     3fa1...(64 digits)  liballot.so
 *
 * The first line identifies the format; '#' begins a comment line. A name may occur several times, for example for an old and a
 * new library. Pure; thread safe.
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

/* `text` has `size` bytes and a NUL. On -EINVAL, err has the number of the wrong line and says what would be accepted. */
int manifest_parse(const char *text, size_t size, struct manifest *ret, struct error *err);
bool manifest_has(const struct manifest *manifest, const char *name,
		  const uint8_t sha256[SHA256_BYTES]);
void manifest_format(const uint8_t sha256[SHA256_BYTES], char ret[2 * SHA256_BYTES + 1]);
