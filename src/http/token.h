/*
 * A bearer token that clients must name, as those of metrics (allotd's setting metrics_token_file). The file is read at each
 * use, so a new token needs no restart. Thread safe.
 */
#pragma once

#include <stdbool.h>

#include "base/error.h"

#define TOKEN_MIN 16 /* bytes: less can be guessed */
#define TOKEN_MAX 255

/*
 * The token in the file: its first line without white space around it. -errno with the path and what is
 * wrong.
 */
int token_read(const char *path, char ret_token[TOKEN_MAX + 1], struct error *err);

/*
 * Whether an Authorization header (NULL: there is none) names the token. Takes the same time wherever they
 * differ. Pure.
 */
bool token_is_named(const char *token, const char *authorization);
