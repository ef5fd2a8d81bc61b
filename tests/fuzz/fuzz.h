/*
 * A fuzz target: one file of this folder each, that takes bytes from someone who is not trusted to the code that
 * reads them. libFuzzer calls it (scripts/fuzz); so does replay.c, with the inputs kept in corpus/, in the unit tests.
 * What must hold whatever comes, beside no crash, no leak and no hang, is checked by FUZZ_CHECK.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Returns 0; nothing of `data` may be kept. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define FUZZ_CHECK(condition) \
	do { \
		if (!(condition)) { \
			fprintf(stderr, "%s:%d: does not hold: %s\n", __FILE__, __LINE__, \
				#condition); \
			abort(); \
		} \
	} while (0)

/* For loops over much that has passed: where they went says nothing of the input, and noting it would take most of the time. */
#ifdef __clang__
#define FUZZ_UNTRACED __attribute__((no_sanitize("coverage"), noinline))
#else
#define FUZZ_UNTRACED
#endif

/* The bytes as a text of their own, so that reading past its end is seen. The caller frees it. */
static inline char *fuzz_text(const uint8_t *data, size_t size)
{
	char *text = malloc(size + 1);

	if (!text)
		abort();
	memcpy(text, data, size);
	text[size] = '\0';
	return text;
}
