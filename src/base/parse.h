/*
 * Strict parsers for what people type: sizes, percents, durations, names, lists of devices. Each parser accepts the whole text
 * or refuses it; nothing is guessed (a size without a unit is refused).
 *
 * Each returns 0, or -EINVAL (-ERANGE if the value does not fit). A failure leaves the output unchanged. err then has one line
 * that names the value and says what would be right:
 *
 *     '4XB': unit unknown; write for example 4GiB, 4096MiB or 4GB
 *
 * Pure: no allocation, no locale, no environment; thread safe. `text` is not NULL.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

#define PARSE_NAME_MAX 64 /* size of a tenant's name, including the NUL */
#define PARSE_UUID_MAX 80
#define PARSE_DEVICES_MAX 16
#define PRIORITY_MOST 100 /* a tenant's priority is from -100 to 100 */

/* A decimal number above 0 and a unit: B, KiB to TiB or KB to TB (also without the B). */
int parse_size(const char *text, uint64_t *ret_bytes, struct error *err);

/* A share in percent: above 0, at most 100, at most two decimals; "%" may follow. */
int parse_percent(const char *text, double *ret_pct, struct error *err);
/* Like parse_percent(), for a GPU's compute. A value below 1 needs "%": "0.3" could mean 30 % of a GPU. */
int parse_cores(const char *text, double *ret_pct, struct error *err);

/* A number above 0 and ns, us, ms, s, m or h. Without a unit the number means seconds. */
int parse_duration(const char *text, uint64_t *ret_ns, struct error *err);

int parse_int(const char *text, int64_t min, int64_t max, int64_t *ret_value, struct error *err);

/* A decimal number from min to max (0 <= min), with at most nine decimals. */
int parse_number(const char *text, double min, double max, double *ret_value, struct error *err);

/* A tenant's name: a letter or digit, then letters, digits, '.', '_' and '-'; at most 63 bytes. */
int parse_name(const char *text, struct error *err);

/* How a tenant shares its GPU: "time" or "space". */
int parse_sharing(const char *text, bool *ret_is_space, struct error *err);

/* An index or a UUID ("GPU-..." or "MIG-..."). */
struct parse_device {
	bool by_uuid;
	uint32_t index;
	char uuid[PARSE_UUID_MAX];
};

struct parse_devices {
	bool all; /* the text was "all"; then `count` is 0 */
	size_t count;
	struct parse_device item[PARSE_DEVICES_MAX];
};

/* "all", or a comma-separated list of indexes and UUIDs without duplicates. */
int parse_devices(const char *text, struct parse_devices *ret_devices, struct error *err);
