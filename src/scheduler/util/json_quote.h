/* Writes a text as a JSON string into the caller's memory. No state. */
#pragma once

#include <stddef.h>

/* Returns the size that json_quote() needs, with quotes. */
size_t json_quote_size(const char *text, size_t length);
/* Writes the text (UTF-8) as a JSON string, without a final NUL. Returns the end of what it wrote. */
char *json_quote(char *to, const char *text, size_t length);
