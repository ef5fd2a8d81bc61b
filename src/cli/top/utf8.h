/* Decodes and encodes UTF-8 characters, and tells how many terminal columns each takes. Pure; does not depend on the locale. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define UTF8_MAX 4 /* bytes of a character */

/* Returns the character at *text and moves *text behind it; 0 at the end. A control character or invalid byte becomes '?'. */
uint32_t utf8_next(const char **text);

/* Writes a character's bytes without a NUL, and returns their number. An invalid character becomes '?'. */
size_t utf8_encode(uint32_t c, char ret[UTF8_MAX]);

/* Returns 2 for wide East Asian characters and emoji, 0 for characters without width, else 1. */
int utf8_width(uint32_t c);

int utf8_columns(const char *text);
