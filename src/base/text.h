/*
 * Text from elsewhere (a process's name, what a container's engine says), before it is shown or becomes
 * JSON. Pure; thread safe.
 */
#pragma once

#include <stddef.h>

#include "base/error.h"

/* What ends the longest beginning of `text` (`size` bytes at most) that is UTF-8 without control characters. */
const char *text_end_of_clean(const char *text, size_t size);
/* Puts '?' in place of every byte that is a control character or no part of UTF-8. */
void text_clean(char *text);
/* -EILSEQ unless all of it is UTF-8 without control characters. */
int text_check(const char *text, struct error *err);
