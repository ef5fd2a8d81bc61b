/* Writes a text as a JSON string to memory of the required size. Pure. */
#pragma once

#include <stddef.h>

/* Returns the size with the quotes. */
size_t json_quote_size(const char *text, size_t length);
/* `text` is UTF-8. Returns the end of the output, which is not NUL-terminated. */
char *json_quote(char *to, const char *text, size_t length);
