#include "base/parse.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#define SIZE_EXAMPLES "write for example 4GiB, 4096MiB or 4GB"

struct unit {
	const char *name;
	uint64_t scale;
};

/* Units without an i are powers of 1000, those with an i powers of 1024, as in Kubernetes' quantities. */
static const struct unit size_units[] = {
	{ "B", 1 },
	{ "KiB", 1ULL << 10 },
	{ "MiB", 1ULL << 20 },
	{ "GiB", 1ULL << 30 },
	{ "TiB", 1ULL << 40 },
	{ "Ki", 1ULL << 10 },
	{ "Mi", 1ULL << 20 },
	{ "Gi", 1ULL << 30 },
	{ "Ti", 1ULL << 40 },
	{ "K", 1000ULL },
	{ "M", 1000000ULL },
	{ "G", 1000000000ULL },
	{ "T", 1000000000000ULL },
	{ "KB", 1000ULL },
	{ "MB", 1000000ULL },
	{ "GB", 1000000000ULL },
	{ "TB", 1000000000000ULL },
	{ NULL, 0 },
};

static const struct unit duration_units[] = {
	{ "", 1000000000ULL },
	{ "s", 1000000000ULL },
	{ "ms", 1000000ULL },
	{ "us", 1000ULL },
	{ "ns", 1ULL },
	{ "m", 60ULL * 1000000000ULL },
	{ "h", 3600ULL * 1000000000ULL },
	{ NULL, 0 },
};

/* whole + fraction / 10^digits */
struct decimal {
	uint64_t whole;
	uint64_t fraction;
	unsigned int digits;
};

#define DECIMAL_DIGITS_MAX 9

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static bool is_alnum(char c)
{
	return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/* The error is "'<text>': <reason>; <hint>". Bytes that would disturb a terminal become '?'; a long text is cut. */
static int fail(struct error *err, int code, const char *text, const char *reason, const char *hint)
{
	char shown[64];
	size_t n = 0;

	for (const char *c = text; *c && n < sizeof(shown) - 4; c++)
		shown[n++] = (unsigned char)*c < 0x20 || *c == 0x7f ? '?' : *c;
	if (text[n]) {
		memcpy(shown + n, "...", 3);
		n += 3;
	}
	shown[n] = '\0';
	return error_set(err, code, "'%s': %s; %s", shown, reason, hint);
}

static const struct unit *find_unit(const struct unit *units, const char *name)
{
	for (const struct unit *u = units; u->name; u++)
		if (strcasecmp(u->name, name) == 0)
			return u;
	return NULL;
}

/* Returns the text after the number; NULL if there is no number, or if *ret cannot hold it. */
static const char *read_decimal(const char *text, struct decimal *ret)
{
	struct decimal d = { 0 };
	const char *c = text;

	if (!is_digit(*c))
		return NULL;
	for (; is_digit(*c); c++)
		if (__builtin_mul_overflow(d.whole, 10, &d.whole) ||
		    __builtin_add_overflow(d.whole, (uint64_t)(*c - '0'), &d.whole))
			return NULL;
	if (*c == '.') {
		c++;
		if (!is_digit(*c))
			return NULL;
		for (; is_digit(*c); c++) {
			if (d.digits == DECIMAL_DIGITS_MAX)
				return NULL;
			d.fraction = d.fraction * 10 + (uint64_t)(*c - '0');
			d.digits++;
		}
	}
	*ret = d;
	return c;
}

/* Computes decimal x scale, rounded down. Returns false if the result does not fit into 63 bits. */
static bool scale_decimal(const struct decimal *d, uint64_t scale, uint64_t *ret)
{
	unsigned __int128 value = (unsigned __int128)d->fraction * scale;

	for (unsigned int i = 0; i < d->digits; i++)
		value /= 10;
	value += (unsigned __int128)d->whole * scale;
	if (value > INT64_MAX)
		return false;
	*ret = (uint64_t)value;
	return true;
}

static int parse_scaled(const char *text, const struct unit *units, const char *hint,
			uint64_t *ret_value, struct error *err)
{
	struct decimal number;
	const struct unit *unit;
	uint64_t value;

	if (!*text)
		return fail(err, EINVAL, text, "is empty", hint);
	if (*text == '-' && is_digit(text[1]))
		return fail(err, EINVAL, text, "must be more than 0", hint);
	const char *rest = read_decimal(text, &number);
	if (!rest)
		return fail(err, EINVAL, text, "not a number with a unit", hint);
	unit = find_unit(units, rest);
	/* A 0 without a unit gets this error, not the one for the missing unit. */
	if (number.whole == 0 && number.fraction == 0 && (unit || !*rest))
		return fail(err, EINVAL, text, "must be more than 0", hint);
	if (!unit)
		return fail(err, EINVAL, text, *rest ? "unit unknown" : "unit missing", hint);
	if (!scale_decimal(&number, unit->scale, &value))
		return fail(err, ERANGE, text, "too large", hint);
	if (value == 0)
		return fail(err, EINVAL, text, "less than the smallest possible value", hint);
	*ret_value = value;
	return 0;
}

int parse_size(const char *text, uint64_t *ret_bytes, struct error *err)
{
	return parse_scaled(text, size_units, SIZE_EXAMPLES, ret_bytes, err);
}

int parse_duration(const char *text, uint64_t *ret_ns, struct error *err)
{
	return parse_scaled(text, duration_units, "write for example 2, 0.5 or 500ms", ret_ns, err);
}

int parse_percent(const char *text, double *ret_pct, struct error *err)
{
	const char *hint = "write a number of percent, for example 30 or 12.5";
	const char *range = "must be more than 0 and at most 100";
	struct decimal number;
	uint64_t hundredths;

	if (*text == '-' && is_digit(text[1]))
		return fail(err, EINVAL, text, range, hint);
	const char *rest = read_decimal(text, &number);
	if (rest && *rest == '%')
		rest++;
	if (!rest || *rest)
		return fail(err, EINVAL, text, "not a number", hint);
	if (!scale_decimal(&number, 100, &hundredths) || hundredths > 10000 ||
	    (number.whole == 0 && number.fraction == 0) ||
	    (number.whole == 100 && number.fraction != 0))
		return fail(err, EINVAL, text, range, hint);
	if (number.digits > 2)
		return fail(err, EINVAL, text, "more than two decimals", hint);
	*ret_pct = (double)hundredths / 100.0;
	return 0;
}

int parse_cores(const char *text, double *ret_pct, struct error *err)
{
	double pct;
	char hint[120];
	int r = parse_percent(text, &pct, err);

	if (r < 0)
		return r;
	/* Refuse 0.3 without "%". In other systems 0.3 means 30 % of a GPU, here 0.3 %. */
	if (pct < 1 && !strchr(text, '%')) {
		snprintf(hint, sizeof(hint),
			 "write %g for that part of a GPU, or %g%% for less than one percent",
			 pct * 100, pct);
		return fail(err, EINVAL, text, "is in percent, not in GPUs", hint);
	}
	*ret_pct = pct;
	return 0;
}

int parse_int(const char *text, int64_t min, int64_t max, int64_t *ret_value, struct error *err)
{
	bool negative = *text == '-';
	const char *digits = text + (negative || *text == '+');
	struct decimal number;
	const char *rest = read_decimal(digits, &number);
	char hint[80];

	snprintf(hint, sizeof(hint), "write a whole number from %lld to %lld", (long long)min,
		 (long long)max);
	if (!rest || *rest || number.digits)
		return fail(err, EINVAL, text, "not a whole number", hint);
	if (number.whole > INT64_MAX)
		return fail(err, ERANGE, text, "out of range", hint);
	int64_t value = negative ? -(int64_t)number.whole : (int64_t)number.whole;
	if (value < min || value > max)
		return fail(err, ERANGE, text, "out of range", hint);
	*ret_value = value;
	return 0;
}

int parse_number(const char *text, double min, double max, double *ret_value, struct error *err)
{
	struct decimal number;
	const char *rest = read_decimal(text, &number);
	char hint[80];
	double fraction;

	snprintf(hint, sizeof(hint), "write a number from %g to %g", min, max);
	if (!rest || *rest)
		return fail(err, EINVAL, text, "not a number", hint);
	fraction = (double)number.fraction;
	for (unsigned int i = 0; i < number.digits; i++)
		fraction /= 10;
	double value = (double)number.whole + fraction;
	if (value < min || value > max)
		return fail(err, ERANGE, text, "out of range", hint);
	*ret_value = value;
	return 0;
}

int parse_name(const char *text, struct error *err)
{
	const char *hint =
		"use 1 to 63 letters, digits, '.', '_' or '-', the first a letter or digit";

	if (!*text)
		return fail(err, EINVAL, text, "is empty", hint);
	if (!is_alnum(*text))
		return fail(err, EINVAL, text, "not a name", hint);
	for (const char *c = text; *c; c++)
		if (!is_alnum(*c) && !strchr("._-", *c))
			return fail(err, EINVAL, text, "not a name", hint);
	if (strlen(text) >= PARSE_NAME_MAX)
		return fail(err, EINVAL, text, "too long", hint);
	return 0;
}

int parse_sharing(const char *text, bool *ret_is_space, struct error *err)
{
	bool is_space = !strcmp(text, "space");

	if (!strcmp(text, "auto"))
		return error_set(err, EINVAL, "'auto': was removed; must be time or space");
	if (!is_space && strcmp(text, "time") != 0)
		return error_set(err, EINVAL, "'%.40s': must be time or space", text);
	*ret_is_space = is_space;
	return 0;
}

static bool looks_like_uuid(const char *item)
{
	if (strncasecmp(item, "GPU-", 4) != 0 && strncasecmp(item, "MIG-", 4) != 0)
		return false;
	for (const char *c = item + 4; *c; c++)
		if (!is_alnum(*c) && *c != '-' && *c != '/')
			return false;
	return item[4] != '\0';
}

static int parse_device(const char *item, struct parse_device *ret, struct error *err)
{
	const char *hint = "write an index such as 0, a UUID such as GPU-..., or all";
	struct parse_device device = { 0 };
	struct decimal number;

	if (looks_like_uuid(item)) {
		device.by_uuid = true;
		strcpy(device.uuid, item);
		*ret = device;
		return 0;
	}
	const char *rest = read_decimal(item, &number);
	if (!rest || *rest || number.digits || number.whole > 1023)
		return fail(err, EINVAL, item, "neither the index nor the UUID of a GPU", hint);
	device.index = (uint32_t)number.whole;
	*ret = device;
	return 0;
}

static bool same_device(const struct parse_device *a, const struct parse_device *b)
{
	if (a->by_uuid != b->by_uuid)
		return false;
	return a->by_uuid ? strcasecmp(a->uuid, b->uuid) == 0 : a->index == b->index;
}

int parse_devices(const char *text, struct parse_devices *ret_devices, struct error *err)
{
	const char *hint = "write for example 0, or 0,1, or all";
	struct parse_devices devices = { 0 };

	if (strcmp(text, "all") == 0) {
		devices.all = true;
		*ret_devices = devices;
		return 0;
	}
	for (const char *c = text;;) {
		size_t length = strcspn(c, ",");
		char item[PARSE_UUID_MAX];
		int r;

		if (length == 0)
			return fail(err, EINVAL, text, "an item of the list is empty", hint);
		if (length >= sizeof(item))
			return fail(err, EINVAL, c, "neither the index nor the UUID of a GPU", hint);
		if (devices.count == PARSE_DEVICES_MAX)
			return fail(err, EINVAL, text, "more than 16 GPUs", hint);
		memcpy(item, c, length);
		item[length] = '\0';
		r = parse_device(item, &devices.item[devices.count], err);
		if (r < 0)
			return r;
		for (size_t i = 0; i < devices.count; i++)
			if (same_device(&devices.item[i], &devices.item[devices.count]))
				return fail(err, EINVAL, text, "names a GPU twice", hint);
		devices.count++;
		if (!c[length])
			break;
		c += length + 1;
	}
	*ret_devices = devices;
	return 0;
}
