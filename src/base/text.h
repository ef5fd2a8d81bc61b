/*
 * Text for people: cleans untrusted text (a process's name, a container engine's output) before it is shown or becomes JSON, and
 * writes amounts of memory. No I/O and no allocation; thread safe.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

/* The end of the longest prefix of `text` (at most `size` bytes) that is UTF-8 without control characters. */
const char *text_clean_prefix_end(const char *text, size_t size);
/* Replaces each control character, and each byte that is not part of valid UTF-8, by '?'. */
void text_clean(char *text);
/* Returns -EILSEQ unless the text is UTF-8 without control characters. */
int text_check(const char *text, struct error *err);

struct amount {
	char text[32];
};

/* Returns a text such as "4 GiB" or "517.5 MiB": rounded to four digits. */
struct amount amount(uint64_t bytes);
