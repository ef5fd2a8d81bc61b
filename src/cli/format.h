/* Formats numbers for users. Pure; every text is NUL-terminated and cut to size. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define FORMAT_MAX 32 /* size of the longest text, in bytes */

/* Writes "512 B" or "4.0 GiB": no decimals in bytes, one in larger units. */
void format_bytes(uint64_t bytes, char text[FORMAT_MAX]);

/* Writes a requested percentage: "30", "12.5". */
void format_asked_pct(double pct, char text[FORMAT_MAX]);

/* Writes a measured percentage: "29.8". */
void format_got_pct(double pct, char text[FORMAT_MAX]);

/* Writes a duration: "0.3s", "2m05s", "3h12m". */
void format_seconds(double seconds, char text[FORMAT_MAX]);

/* Writes a duration with up to three digits: "85us", "0.85ms", "8.54ms", "854ms", "8.54s". */
void format_ms(double ms, char text[FORMAT_MAX]);

void format_rate(double per_second, char text[FORMAT_MAX]);
