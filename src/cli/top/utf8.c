#include "cli/top/utf8.h"

#include <string.h>

#include "base/text.h"

uint32_t utf8_next(const char **text)
{
	const unsigned char *c = (const unsigned char *)*text;
	size_t n = c[0] < 0x80 ? 1 : c[0] < 0xe0 ? 2 : c[0] < 0xf0 ? 3 : 4;
	uint32_t value;

	if (!c[0])
		return 0;
	if (text_clean_prefix_end(*text, n) != *text + n) {
		(*text)++;
		return '?';
	}
	value = n == 1 ? c[0] : c[0] & (0x7fU >> n);
	for (size_t i = 1; i < n; i++)
		value = value << 6 | (c[i] & 0x3f);
	*text += n;
	return value;
}

size_t utf8_encode(uint32_t c, char ret[UTF8_MAX])
{
	size_t n = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;

	if (c > 0x10ffff || (c >= 0xd800 && c < 0xe000)) {
		ret[0] = '?';
		return 1;
	}
	if (n == 1) {
		ret[0] = (char)c;
		return 1;
	}
	for (size_t i = n; i-- > 1; c >>= 6)
		ret[i] = (char)(0x80 | (c & 0x3f));
	ret[0] = (char)((0xf00U >> n & 0xff) | c);
	return n;
}

struct range {
	uint32_t first, last;
};

static const struct range without_width[] = {
	{ 0x0300, 0x036f }, { 0x0483, 0x0489 }, { 0x0591, 0x05bd },   { 0x0610, 0x061a },
	{ 0x064b, 0x065f }, { 0x1ab0, 0x1aff }, { 0x1dc0, 0x1dff },   { 0x200b, 0x200f },
	{ 0x202a, 0x202e }, { 0x2060, 0x2064 }, { 0x20d0, 0x20ff },   { 0xfe00, 0xfe0f },
	{ 0xfe20, 0xfe2f }, { 0xfeff, 0xfeff }, { 0xe0100, 0xe01ef },
};

/* Unicode ranges that EastAsianWidth lists as wide or full-width. */
static const struct range wide[] = {
	{ 0x1100, 0x115f },   { 0x2329, 0x232a },   { 0x2e80, 0x303e },   { 0x3041, 0xa4cf },
	{ 0xa960, 0xa97c },   { 0xac00, 0xd7a3 },   { 0xf900, 0xfaff },   { 0xfe30, 0xfe6f },
	{ 0xff00, 0xff60 },   { 0xffe0, 0xffe6 },   { 0x1f300, 0x1f64f }, { 0x1f680, 0x1f6ff },
	{ 0x1f900, 0x1f9ff }, { 0x20000, 0x3fffd },
};

static int is_in(const struct range *ranges, size_t count, uint32_t c)
{
	for (size_t i = 0; i < count; i++)
		if (c >= ranges[i].first && c <= ranges[i].last)
			return 1;
	return 0;
}

int utf8_width(uint32_t c)
{
	if (c < 0x300)
		return 1;
	if (is_in(without_width, sizeof(without_width) / sizeof(*without_width), c))
		return 0;
	return 1 + is_in(wide, sizeof(wide) / sizeof(*wide), c);
}

int utf8_columns(const char *text)
{
	int columns = 0;
	uint32_t c;

	while ((c = utf8_next(&text)))
		columns += utf8_width(c);
	return columns;
}
