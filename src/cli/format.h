/* Numbers as people read them. Pure; every text is NUL-terminated and cut to size. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define FORMAT_MAX 32 /* bytes that any of these needs at most */

/* "512 B", "4.0 GiB": one decimal from KiB on, at most four digits before it. */
void format_bytes(uint64_t bytes, char text[FORMAT_MAX]);

/* "30", "12.5": as it was asked for. */
void format_asked_pct(double pct, char text[FORMAT_MAX]);

/* "29.8": as it was measured. */
void format_got_pct(double pct, char text[FORMAT_MAX]);

/* "0.3s", "2m05s", "3h12m". */
void format_seconds(double seconds, char text[FORMAT_MAX]);

/* "85us", "0.85ms", "8.54ms", "854ms", "8.54s": three digits. */
void format_ms(double ms, char text[FORMAT_MAX]);

/* "0.05", "8.54", "85.4", "8541" a second. */
void format_rate(double per_second, char text[FORMAT_MAX]);
