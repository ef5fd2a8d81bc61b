/* A text as a JSON string, to be written where its size is known already. Pure. */
#pragma once

#include <stddef.h>

/* With its quotes. */
size_t json_quote_size(const char *text, size_t length);
/* `text`: UTF-8. Returns what is behind it; no NUL is written. */
char *json_quote(char *to, const char *text, size_t length);
