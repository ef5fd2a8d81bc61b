#include "cli/format.h"

#include <stdio.h>

void format_bytes(uint64_t bytes, char text[FORMAT_MAX])
{
	static const char *const units[] = { "KiB", "MiB", "GiB", "TiB", "PiB" };
	double value = (double)bytes / 1024.0;
	size_t i = 0;

	if (bytes < 1024) {
		snprintf(text, FORMAT_MAX, "%u B", (unsigned int)bytes);
		return;
	}
	/* A value of 1023.95 or more would print as 1024.0 or more, so use the next unit. */
	while (value >= 1023.95 && i + 1 < sizeof(units) / sizeof(units[0])) {
		value /= 1024.0;
		i++;
	}
	snprintf(text, FORMAT_MAX, "%.1f %s", value, units[i]);
}

void format_asked_pct(double pct, char text[FORMAT_MAX])
{
	snprintf(text, FORMAT_MAX, "%.5g", pct);
}

void format_got_pct(double pct, char text[FORMAT_MAX])
{
	snprintf(text, FORMAT_MAX, "%.1f", pct);
}

void format_seconds(double seconds, char text[FORMAT_MAX])
{
	unsigned long whole;

	if (seconds < 0)
		seconds = 0;
	if (seconds < 59.95) {
		snprintf(text, FORMAT_MAX, "%.1fs", seconds);
		return;
	}
	if (seconds > 1e9)
		seconds = 1e9;
	whole = (unsigned long)(seconds + 0.5);
	if (whole < 3600)
		snprintf(text, FORMAT_MAX, "%lum%02lus", whole / 60, whole % 60);
	else
		snprintf(text, FORMAT_MAX, "%luh%02lum", whole / 3600, whole / 60 % 60);
}

/* So that a number has three digits in all. */
static int decimals_of(double value)
{
	return value < 9.995 ? 2 : value < 99.95 ? 1 : 0;
}

void format_ms(double ms, char text[FORMAT_MAX])
{
	if (ms < 0.1)
		snprintf(text, FORMAT_MAX, "%.0fus", ms > 0 ? ms * 1000 : 0);
	else if (ms < 999.5)
		snprintf(text, FORMAT_MAX, "%.*fms", decimals_of(ms), ms);
	else
		snprintf(text, FORMAT_MAX, "%.*fs", decimals_of(ms / 1000),
			 ms < 1e12 ? ms / 1000 : 1e9);
}

void format_rate(double per_second, char text[FORMAT_MAX])
{
	snprintf(text, FORMAT_MAX, "%.*f", decimals_of(per_second),
		 per_second < 1e9 ? per_second : 1e9);
}
