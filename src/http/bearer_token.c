#include "http/bearer_token.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/cleanup.h"

#define SCHEME "Bearer "
#define SPACE " \t\r\n"

int token_read(const char *path, char ret_token[TOKEN_MAX + 1], struct error *err)
{
	char line[TOKEN_MAX + 64];
	cleanup_file FILE *file = fopen(path, "re");
	if (!file)
		return error_set_errno(err, errno, "%s", path);
	if (!fgets(line, sizeof(line), file))
		return ferror(file)
			       ? error_set_errno(err, EIO, "%s", path)
			       : error_set(err, EINVAL, "%s: is empty: must contain a token", path);
	char *begin = line + strspn(line, SPACE);
	size_t length = strlen(begin);
	while (length && strchr(SPACE, begin[length - 1]))
		length--;
	if (length < TOKEN_MIN || length > TOKEN_MAX)
		return error_set(err, EINVAL, "%s: a token must have %d to %d bytes", path,
				 TOKEN_MIN, TOKEN_MAX);
	for (size_t i = 0; i < length; i++)
		if (begin[i] <= ' ' || begin[i] > '~')
			return error_set(
				err, EINVAL,
				"%s: a token may contain only printable ASCII characters without spaces",
				path);
	memcpy(ret_token, begin, length);
	ret_token[length] = '\0';
	return 0;
}

/* Takes constant time, except for a value longer than TOKEN_MAX, which is rejected at once. */
bool token_is_named(const char *token, const char *authorization)
{
	char right[TOKEN_MAX + 1] = { 0 }, named[TOKEN_MAX + 1] = { 0 };
	volatile unsigned char differs = 0;
	if (!authorization || strncasecmp(authorization, SCHEME, strlen(SCHEME)) != 0)
		return false;
	authorization += strlen(SCHEME);
	authorization += strspn(authorization, " ");
	if (strlen(authorization) > TOKEN_MAX)
		return false;
	strcpy(right, token);
	strcpy(named, authorization);
	for (size_t i = 0; i < sizeof(right); i++)
		differs |= (unsigned char)(right[i] ^ named[i]);
	return !differs;
}
