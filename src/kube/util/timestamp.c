#include "kube/util/timestamp.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "kube/util/sanitize.h"

static int parse_digits(const char **text, unsigned count)
{
	int value = 0;
	for (unsigned i = 0; i < count; i++, (*text)++) {
		if (**text < '0' || **text > '9')
			return -1;
		value = value * 10 + (**text - '0');
	}
	return value;
}

static bool parse_char(const char **text, const char *one_of)
{
	if (!**text || !strchr(one_of, **text))
		return false;
	(*text)++;
	return true;
}

static bool is_leap(int year)
{
	return year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
}

static bool is_date(int year, int month, int day)
{
	static const int days[] = { 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31 };
	return year >= 1970 && month >= 1 && month <= 12 && day >= 1 &&
	       day <= days[month - 1] + (month == 2 && is_leap(year));
}

static bool parse_date_time(const char **text, int64_t *ret_s)
{
	struct tm tm = { 0 };
	int year = parse_digits(text, 4);
	if (year < 0 || !parse_char(text, "-"))
		return false;
	int month = parse_digits(text, 2);
	if (month < 0 || !parse_char(text, "-"))
		return false;
	tm.tm_mday = parse_digits(text, 2);
	if (!is_date(year, month, tm.tm_mday) || !parse_char(text, "Tt"))
		return false;
	tm.tm_hour = parse_digits(text, 2);
	if (tm.tm_hour < 0 || tm.tm_hour > 23 || !parse_char(text, ":"))
		return false;
	tm.tm_min = parse_digits(text, 2);
	if (tm.tm_min < 0 || tm.tm_min > 59 || !parse_char(text, ":"))
		return false;
	tm.tm_sec = parse_digits(text, 2);
	if (tm.tm_sec < 0 || tm.tm_sec > 60)
		return false;
	tm.tm_year = year - 1900;
	tm.tm_mon = month - 1;
	*ret_s = (int64_t)timegm(&tm);
	return true;
}

/* Reads "Z", or the zone's offset from UTC, such as "+08:00". *ret_ahead_s is how far the zone is ahead of UTC. */
static bool parse_zone(const char **text, int64_t *ret_ahead_s)
{
	*ret_ahead_s = 0;
	if (parse_char(text, "Zz"))
		return true;
	bool is_behind = **text == '-';
	if (!parse_char(text, "+-"))
		return false;
	int hours = parse_digits(text, 2);
	if (hours < 0 || hours > 23 || !parse_char(text, ":"))
		return false;
	int minutes = parse_digits(text, 2);
	if (minutes < 0 || minutes > 59)
		return false;
	*ret_ahead_s = (is_behind ? -1 : 1) * (hours * 3600 + minutes * 60);
	return true;
}

int timestamp_parse_rfc3339(const char *text, int64_t *ret_s, struct error *err)
{
	const char *at = text;
	int64_t s, ahead_s;
	bool is_good = parse_date_time(&at, &s);
	if (is_good && parse_char(&at, ".")) {
		is_good = parse_digits(&at, 1) >= 0;
		while (parse_digits(&at, 1) >= 0)
			;
	}
	if (!is_good || !parse_zone(&at, &ahead_s) || *at)
		return error_sanitize(
			err,
			error_set(err, EINVAL,
				  "'%.40s': must be a time such as 2026-08-21T10:00:00Z", text));
	*ret_s = s - ahead_s;
	return 0;
}

static void format(int64_t s, char between, const char *zone, char text[TIMESTAMP_MAX])
{
	time_t time = (time_t)s;
	struct tm tm = { 0 };
	gmtime_r(&time, &tm);
	snprintf(text, TIMESTAMP_MAX, "%04u-%02u-%02u%c%02u:%02u:%02u%s",
		 (unsigned)(tm.tm_year + 1900) % 10000, (unsigned)(tm.tm_mon + 1) % 100,
		 (unsigned)tm.tm_mday % 100, between, (unsigned)tm.tm_hour % 100,
		 (unsigned)tm.tm_min % 100, (unsigned)tm.tm_sec % 100, zone);
}

void timestamp_format_rfc3339(int64_t s, char text[TIMESTAMP_MAX])
{
	format(s, 'T', "Z", text);
}

void timestamp_format_plain(int64_t s, char text[TIMESTAMP_MAX])
{
	format(s, ' ', "", text);
}
