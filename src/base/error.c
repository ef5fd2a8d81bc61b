#include "base/error.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

int error_set(struct error *err, int code, const char *format, ...)
{
	if (!err)
		return -code;

	va_list ap;
	va_start(ap, format);
	vsnprintf(err->text, sizeof(err->text), format, ap);
	va_end(ap);
	err->code = code;
	return -code;
}

int error_set_errno(struct error *err, int code, const char *format, ...)
{
	if (!err)
		return -code;

	va_list ap;
	va_start(ap, format);
	int n = vsnprintf(err->text, sizeof(err->text), format, ap);
	va_end(ap);
	if (n >= 0 && (size_t)n < sizeof(err->text))
		snprintf(err->text + n, sizeof(err->text) - (size_t)n, ": %s", strerror(code));
	err->code = code;
	return -code;
}

int error_add(struct error *err, int result, const char *format, ...)
{
	if (!err)
		return result;

	char text[ERROR_TEXT_MAX];
	va_list ap;
	va_start(ap, format);
	int n = vsnprintf(text, sizeof(text), format, ap);
	va_end(ap);
	if (n >= 0 && (size_t)n + 2 < sizeof(text)) {
		text[n++] = ':';
		text[n++] = ' ';
		size_t room = sizeof(text) - (size_t)n - 1;
		size_t length = strnlen(err->text, room);
		memcpy(text + n, err->text, length);
		text[(size_t)n + length] = '\0';
	}
	memcpy(err->text, text, sizeof(text));
	return result;
}
