/*
 * Points in time as they stand in annotations, in seconds since 1970. Pure: no zone of this machine's is
 * asked; thread safe.
 */
#pragma once

#include <stdint.h>

#include "base/error.h"

#define WHEN_MAX 32 /* bytes of a time as text, its NUL included */

/* RFC 3339: "2026-08-21T10:00:00Z", "...+08:00"; fractions of a second are dropped. -EINVAL with what
 * would be right. */
int when_parse_rfc3339(const char *text, int64_t *ret_s, struct error *err);
/* In UTC. Years 1970 to 9999. */
void when_format_rfc3339(int64_t s, char text[WHEN_MAX]);

/* The same, as "2026-08-21 10:00:00". */
void when_format_plain(int64_t s, char text[WHEN_MAX]);
