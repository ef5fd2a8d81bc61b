#include "kube/quantity.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kube/blame.h"

/* So many fit 64 bits. */
#define DIGITS_MOST 19

static bool parse(const char *text, uint64_t most, uint64_t *ret)
{
	static const struct {
		const char *suffix;
		uint64_t factor;
	} rows[] = { { "", 1 },         { "k", 1000 },     { "M", 1000000 },  { "G", 1000000000 },
		     { "Ki", 1 << 10 }, { "Mi", 1 << 20 }, { "Gi", 1 << 30 }, { "e3", 1000 },
		     { "E3", 1000 },    { "e6", 1000000 }, { "E6", 1000000 } };
	size_t digits = strspn(text, "0123456789");
	uint64_t number;
	if (!digits || digits > DIGITS_MOST)
		return false;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		if (strcmp(text + digits, rows[i].suffix) != 0)
			continue;
		if (__builtin_mul_overflow(strtoull(text, NULL, 10), rows[i].factor, &number) ||
		    number > most)
			return false;
		*ret = number;
		return true;
	}
	return false;
}

int quantity_read(const json_t *value, uint64_t most, uint64_t *ret, struct error *err)
{
	char number[32];
	if (json_is_integer(value))
		snprintf(number, sizeof(number), "%lld", (long long)json_integer_value(value));
	const char *text = json_is_integer(value) ? number : json_string_value(value);
	if (text && parse(text, most, ret))
		return 0;
	return blame(err, error_set(err, EINVAL, "'%.40s': must be a whole number up to %" PRIu64,
				    text ? text : "", most));
}
