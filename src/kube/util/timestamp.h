/* Times in annotations, in seconds since 1970. Pure: the machine's time zone is not used. Thread safe. */
#pragma once

#include <stdint.h>

#include "base/error.h"

#define TIMESTAMP_MAX 32 /* size of a time as text, with its NUL */

/* RFC 3339: "2026-08-21T10:00:00Z" or "...+08:00". Drops fractions of a second. Returns 0 or -EINVAL. */
int timestamp_parse_rfc3339(const char *text, int64_t *ret_s, struct error *err);
/* In UTC, for years 1970 to 9999. */
void timestamp_format_rfc3339(int64_t s, char text[TIMESTAMP_MAX]);

/* "2026-08-21 10:00:00" in UTC. */
void timestamp_format_plain(int64_t s, char text[TIMESTAMP_MAX]);
