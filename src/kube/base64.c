#include "kube/base64.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static int digit(char c)
{
	static const char digits[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
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
