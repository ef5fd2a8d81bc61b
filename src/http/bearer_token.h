/*
 * A bearer token that clients must present, for example for metrics (allotd's setting metrics_token_file). The file is read at
 * each use, so a new token needs no restart. Thread safe.
 */
#pragma once

#include <stdbool.h>

#include "base/error.h"

#define TOKEN_MIN 16 /* bytes; a shorter token could be guessed */
#define TOKEN_MAX 255

/* The token is the first line of the file without surrounding white space. The error names the path. */
int token_read(const char *path, char ret_token[TOKEN_MAX + 1], struct error *err);

/*
 * Whether `authorization`, the value of the Authorization header (NULL: no header), is a bearer token equal to `token`. The
 * comparison's time does not depend on where the texts differ. Pure.
 */
bool token_is_named(const char *token, const char *authorization);
