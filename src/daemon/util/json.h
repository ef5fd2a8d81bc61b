/* Helpers for the JSON library jansson: checked reads. */
#pragma once

#include <jansson.h>
#include <stdint.h>

#include "base/error.h"
#include "base/json.h"

/* Return 1 if *ret was written, 0 if the member is absent or null, -EINVAL and "<key>: must be ..." if its value is wrong. */
int json_read_string(const json_t *object, const char *key, const char **ret, struct error *err);
int json_read_int(const json_t *object, const char *key, int64_t min, int64_t max, int64_t *ret,
		  struct error *err);
int json_read_number(const json_t *object, const char *key, double *ret, struct error *err);
int json_read_bool(const json_t *object, const char *key, bool *ret, struct error *err);
int json_read_array(const json_t *object, const char *key, json_t **ret, struct error *err);

/* Makes a string from any bytes, with '?' for invalid UTF-8. Returns NULL if out of memory. */
json_t *json_clean_string(const char *text);
