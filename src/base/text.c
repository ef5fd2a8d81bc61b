#include "base/text.h"

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

/*
 * Length of the UTF-8 character at `c`. 0 for a control character of C0 or C1, and for an invalid character (RFC 3629 excludes
 * surrogates, overlong forms and values above U+10FFFF).
 */
static size_t clean_length(const unsigned char *c, size_t size)
{
	size_t n = c[0] < 0x80 ? 1 : c[0] < 0xc2 ? 0 : c[0] < 0xe0 ? 2 : c[0] < 0xf0 ? 3 : 4;
	if (n == 0 || n > size || c[0] > 0xf4 || c[0] < 0x20 || c[0] == 0x7f)
		return 0;
	for (size_t i = 1; i < n; i++)
		if ((c[i] & 0xc0) != 0x80)
			return 0;
	bool is_bad = (c[0] == 0xc2 && c[1] < 0xa0) || (c[0] == 0xe0 && c[1] < 0xa0) ||
		      (c[0] == 0xed && c[1] > 0x9f) || (c[0] == 0xf0 && c[1] < 0x90) ||
		      (c[0] == 0xf4 && c[1] > 0x8f);
	return is_bad ? 0 : n;
}

const char *text_clean_prefix_end(const char *text, size_t size)
{
	size_t left = strnlen(text, size), n;
	while (left && (n = clean_length((const unsigned char *)text, left))) {
		text += n;
		left -= n;
	}
	return text;
}

void text_clean(char *text)
{
	for (;;) {
		text = text + (text_clean_prefix_end(text, SIZE_MAX) - text);
		if (!*text)
			return;
		*text++ = '?';
	}
}

int text_check(const char *text, struct error *err)
{
	char shown[ERROR_TEXT_MAX / 2];

	if (!*text_clean_prefix_end(text, SIZE_MAX))
		return 0;
	snprintf(shown, sizeof(shown), "%s", text);
	text_clean(shown);
	return error_set(err, EILSEQ,
			 "'%s': is not UTF-8, or has control characters (each shown as \"?\")",
			 shown);
}

struct amount amount(uint64_t bytes)
{
	static const char *const units[] = { "B", "KiB", "MiB", "GiB", "TiB" };
	double value = (double)bytes;
	unsigned unit = 0;
	struct amount a;
	while (value >= 1024 && unit < 4) {
		value /= 1024;
		unit++;
	}
	snprintf(a.text, sizeof(a.text), "%.4g %s", value, units[unit]);
	return a;
}
