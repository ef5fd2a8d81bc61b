#include "kube/util/quantity.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kube/util/sanitize.h"

#define DIGITS_MAX 18 /* a number with this many digits always fits 64 bits */
#define EXPONENT_MAX 40

/* digits / 10^behind. `behind` is negative if zeros were cut off (1000: digits 1, behind -3). */
struct number {
	bool is_negative;
	uint64_t digits;
	int behind;
};

/* 2^two * 10^ten */
struct factor {
	int two, ten;
};

static const struct {
	const char *text;
	struct factor factor;
} suffixes[] = {
	{ "", { 0, 0 } },    { "Ki", { 10, 0 } }, { "Mi", { 20, 0 } }, { "Gi", { 30, 0 } },
	{ "Ti", { 40, 0 } }, { "Pi", { 50, 0 } }, { "Ei", { 60, 0 } }, { "n", { 0, -9 } },
	{ "u", { 0, -6 } },  { "m", { 0, -3 } },  { "k", { 0, 3 } },   { "M", { 0, 6 } },
	{ "G", { 0, 9 } },   { "T", { 0, 12 } },  { "P", { 0, 15 } },  { "E", { 0, 18 } },
};

static int parse_suffix(const char *text, struct factor *ret)
{
	for (size_t i = 0; i < sizeof(suffixes) / sizeof(suffixes[0]); i++)
		if (!strcmp(suffixes[i].text, text)) {
			*ret = suffixes[i].factor;
			return 0;
		}
	if (*text != 'e' && *text != 'E')
		return -EINVAL;
	const char *digits = text + 1 + (text[1] == '-' || text[1] == '+');
	size_t length = strspn(digits, "0123456789");
	if (!length || digits[length])
		return -EINVAL;
	int ten = length > 3 ? EXPONENT_MAX + 1 : atoi(digits);
	*ret = (struct factor){ .ten = text[1] == '-' ? -ten : ten };
	return ten > EXPONENT_MAX ? -ERANGE : 0;
}

static int parse_digits(const char **text, struct number *ret)
{
	const char *at = *text;
	struct number number = { .is_negative = *at == '-' };
	bool has_point = false;
	/* zeros at the end of the digits so far; they count only if another digit follows */
	int count = 0, zeros = 0;
	unsigned seen = 0;
	at += *at == '-' || *at == '+';
	for (; (*at >= '0' && *at <= '9') || (*at == '.' && !has_point); at++) {
		if (*at == '.') {
			has_point = true;
			continue;
		}
		seen++;
		if (*at == '0') {
			zeros++;
			number.behind += has_point;
			continue;
		}
		if (number.digits && count + zeros + 1 > DIGITS_MAX)
			return -ERANGE;
		for (; number.digits && zeros; zeros--, count++)
			number.digits *= 10;
		zeros = 0;
		number.digits = number.digits * 10 + (uint64_t)(*at - '0');
		count++;
		number.behind += has_point;
	}
	if (!seen)
		return -EINVAL;
	/* Trailing zeros are not in `digits`; each of them lowers `behind` by one. For the number 0, `behind` becomes 0. */
	number.behind -= number.digits ? zeros : number.behind;
	*text = at;
	*ret = number;
	return 0;
}

static int multiply(struct number number, struct factor factor, int64_t *ret)
{
	__extension__ unsigned __int128 value = number.digits;
	int ten = factor.ten - number.behind;
	if (!number.digits) {
		*ret = 0;
		return 0;
	}
	value <<= factor.two; /* at most 60 + 60 bits */
	for (; ten < 0; ten++) {
		if (value % 10)
			return -EDOM;
		value /= 10;
	}
	for (; ten > 0; ten--) {
		value *= 10;
		if (value > INT64_MAX)
			return -ERANGE;
	}
	if (value > INT64_MAX)
		return -ERANGE;
	*ret = number.is_negative ? -(int64_t)value : (int64_t)value;
	return 0;
}

int quantity_parse(const char *text, int64_t *ret, struct error *err)
{
	struct number number;
	struct factor factor;
	const char *suffix = text;
	int64_t value;
	int r = parse_digits(&suffix, &number);
	if (r >= 0)
		r = parse_suffix(suffix, &factor);
	if (r >= 0)
		r = multiply(number, factor, &value);
	switch (r) {
	case 0: *ret = value; return 0;
	case -EDOM: return error_set(err, EDOM, "'%.40s' is not a whole number", text);
	case -ERANGE:
		return error_set(err, ERANGE, "'%.40s' is too large or has too many digits", text);
	default: return error_set(err, EINVAL, "'%.40s' is not an amount", text);
	}
}

/* Returns NULL if the value cannot be a quantity. `number` is space for the text of a JSON number. */
static const char *text_of(const json_t *value, char number[32])
{
	if (json_is_string(value))
		return strlen(json_string_value(value)) == json_string_length(value)
			       ? json_string_value(value)
			       : NULL;
	if (json_is_integer(value))
		snprintf(number, 32, "%" JSON_INTEGER_FORMAT, json_integer_value(value));
	else if (json_is_real(value))
		snprintf(number, 32, "%.15g", json_real_value(value));
	else
		return NULL;
	return number;
}

int quantity_read_any(const json_t *value, int64_t *ret, struct error *err)
{
	char number[32];
	const char *text = text_of(value, number);
	if (text)
		return quantity_parse(text, ret, err);
	return error_set(err, EINVAL, "must be an amount");
}

int quantity_read(const json_t *value, uint64_t most, uint64_t *ret, struct error *err)
{
	char number[32];
	const char *text = text_of(value, number);
	int64_t amount;
	if (text && quantity_parse(text, &amount, NULL) == 0 && amount >= 0 &&
	    (uint64_t)amount <= most) {
		*ret = (uint64_t)amount;
		return 0;
	}
	return error_sanitize(err, error_set(err, EINVAL,
					     "'%.40s': must be a whole number up to %" PRIu64,
					     text ? text : "", most));
}
