#include "cli/doctor/version.h"

#include <ctype.h>
#include <string.h>

#define DIGITS "0123456789"

bool version_find(const char *text, char ret[VERSION_TEXT_MAX])
{
	ret[0] = '\0';
	for (const char *at = text; (at = strpbrk(at, DIGITS));) {
		size_t n = strspn(at, DIGITS ".");
		/* The number must not be part of a word, as in "k9s". A 'v' may precede it. */
		bool begins = at == text || !isalnum((unsigned char)at[-1]) ||
			      (at[-1] == 'v' && (at - 1 == text || !isalnum((unsigned char)at[-2])));
		if (begins && memchr(at, '.', n) && at[n - 1] != '.' && n < VERSION_TEXT_MAX) {
			memcpy(ret, at, n);
			ret[n] = '\0';
			return true;
		}
		at += n;
	}
	return false;
}

bool version_find_word(const char *text, char ret[VERSION_TEXT_MAX])
{
	ret[0] = '\0';
	for (const char *at = text; (at = strpbrk(at, DIGITS));) {
		size_t n = strspn(at, DIGITS ".");
		bool is_word = at > text && at[-1] == ' ' && (at[n] == ' ' || at[n] == '\n');
		if (is_word && n < VERSION_TEXT_MAX && memchr(at, '.', n)) {
			memcpy(ret, at, n);
			ret[n] = '\0';
			return true;
		}
		at += n;
	}
	return false;
}
