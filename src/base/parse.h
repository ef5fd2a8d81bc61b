/*
 * Strict parsers for what people type: sizes, percents, durations, names, choices of devices. Every
 * one takes the whole text or refuses it; nothing is guessed (a size without a unit is refused).
 *
 * Each returns 0 and writes its ret_ output, or returns -EINVAL (-ERANGE where the value does not
 * fit) and leaves it alone; err then holds one line that names the value and what would be right:
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

#define PARSE_NAME_MAX 64 /* of a tenant's name, the final NUL included */
#define PARSE_UUID_MAX 80
#define PARSE_DEVICES_MAX 16

/* Memory: a decimal number above 0 and a unit, B, KiB .. TiB, KB .. TB (also Ki .. Ti). */
int parse_size(const char *text, uint64_t *ret_bytes, struct error *err);

/* A share: above 0, at most 100, two decimals at most, "%" may follow. In percent. */
int parse_percent(const char *text, double *ret_pct, struct error *err);
/* The same of a GPU's compute, where less than 1 needs its "%": it could be meant as a part of a GPU. */
int parse_cores(const char *text, double *ret_pct, struct error *err);

/* A time: a number above 0 and ns, us, ms, s, m or h; without a unit, seconds. In nanoseconds. */
int parse_duration(const char *text, uint64_t *ret_ns, struct error *err);

/* A whole number from min to max. */
int parse_int(const char *text, int64_t min, int64_t max, int64_t *ret_value, struct error *err);

/* A decimal number from min to max (0 <= min), nine decimals at most. */
int parse_number(const char *text, double min, double max, double *ret_value, struct error *err);

/*
 * A tenant's name: a letter or digit, then letters, digits, '.', '_' and '-'; at most 63 bytes. On
 * success the text itself is the name.
 */
int parse_name(const char *text, struct error *err);

/* How a tenant shares its GPU: time or space. */
int parse_sharing(const char *text, bool *ret_is_space, struct error *err);

/* One device as chosen: by index, or by UUID ("GPU-..." or "MIG-..."). */
struct parse_device {
	bool by_uuid;
	uint32_t index;            /* when not by_uuid */
	char uuid[PARSE_UUID_MAX]; /* when by_uuid */
};

struct parse_devices {
	bool all; /* "all": item is empty */
	size_t count;
	struct parse_device item[PARSE_DEVICES_MAX];
};

/* "all", or a comma-separated list of indexes and UUIDs, none twice. */
int parse_devices(const char *text, struct parse_devices *ret_devices, struct error *err);
