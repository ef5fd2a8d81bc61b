/* Characters of UTF-8, and how many columns of a terminal each takes. Pure; of no locale. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define UTF8_MAX 4 /* bytes of a character */

/*
 * The character that *text begins with, and *text moved behind it; 0 at the end, where it stays. What is no
 * UTF-8 or a control character is '?', a byte at a time.
 */
uint32_t utf8_next(const char **text);

/* Writes a character's bytes without a NUL, and returns how many; what is none becomes '?'. */
size_t utf8_encode(uint32_t c, char ret[UTF8_MAX]);

/* 2: of East Asia and emoji; 0: combines with the one before it; else 1. */
int utf8_width(uint32_t c);

/* Columns of a whole text. */
int utf8_columns(const char *text);
