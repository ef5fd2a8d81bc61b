#include "kube/util/base64.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

static int digit(char c)
{
	const char *at = c ? strchr(digits, c) : NULL;
	return at ? (int)(at - digits) : -1;
}

int base64_decode(const char *base64, char **ret_text)
{
	size_t length = strlen(base64), size = 0;
	unsigned bits = 0;
	uint32_t held = 0;
	while (length && base64[length - 1] == '=')
		length--;
	if (strlen(base64) % 4 || strlen(base64) - length > 2)
		return -EINVAL;
	char *text = malloc(length / 4 * 3 + 3);
	if (!text)
		return -ENOMEM;
	for (size_t i = 0; i < length; i++) {
		int value = digit(base64[i]);
		if (value < 0) {
			free(text);
			return -EINVAL;
		}
		held = held << 6 | (uint32_t)value;
		bits += 6;
		if (bits >= 8) {
			bits -= 8;
			text[size++] = (char)(held >> bits & 0xff);
		}
	}
	text[size] = '\0';
	if (strlen(text) != size || !size) {
		free(text);
		return -EINVAL;
	}
	*ret_text = text;
	return 0;
}

char *base64_encode(const char *text)
{
	size_t size = strlen(text), used = 0;
	char *base64 = malloc(size / 3 * 4 + 5);
	if (!base64)
		return NULL;
	for (size_t i = 0; i < size; i += 3) {
		uint32_t held = 0;
		size_t count = size - i < 3 ? size - i : 3;
		for (size_t k = 0; k < 3; k++)
			held = held << 8 | (k < count ? (unsigned char)text[i + k] : 0u);
		for (size_t k = 0; k < 4; k++)
			base64[used++] = k <= count ? digits[held >> (18 - 6 * k) & 63] : '=';
	}
	base64[used] = '\0';
	return base64;
}
