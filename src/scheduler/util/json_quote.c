#include "scheduler/util/json_quote.h"

#include <stdbool.h>
#include <string.h>

#define ESCAPE_CODE "\\u00"
#define ESCAPE_CODE_SIZE 6

static bool is_control(char c)
{
	return (unsigned char)c < ' ';
}

static bool is_escaped(char c)
{
	return c == '"' || c == '\\';
}

size_t json_quote_size(const char *text, size_t length)
{
	size_t size = length + 2;
	for (size_t i = 0; i < length; i++) {
		size += is_control(text[i]) ? ESCAPE_CODE_SIZE - 1 : 0;
		size += is_escaped(text[i]);
	}
	return size;
}

char *json_quote(char *to, const char *text, size_t length)
{
	static const char digits[] = "0123456789ABCDEF";
	*to++ = '"';
	for (size_t i = 0; i < length; i++) {
		if (is_control(text[i])) {
			to = (char *)memcpy(to, ESCAPE_CODE, strlen(ESCAPE_CODE)) +
			     strlen(ESCAPE_CODE);
			*to++ = digits[text[i] >> 4];
			*to++ = digits[text[i] & 15];
			continue;
		}
		if (is_escaped(text[i]))
			*to++ = '\\';
		*to++ = text[i];
	}
	*to++ = '"';
	return to;
}
