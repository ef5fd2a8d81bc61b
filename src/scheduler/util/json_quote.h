/* Writes a text as a JSON string to memory of the required size. Pure. */
#pragma once

#include <stddef.h>

/* Returns the size of the text as a JSON string with its quotes. */
size_t json_quote_size(const char *text, size_t length);
/* Writes the text, which is UTF-8, as a JSON string without a NUL. Returns the end of the output. */
char *json_quote(char *to, const char *text, size_t length);
