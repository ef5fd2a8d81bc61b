#include "daemon/util/json.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/text.h"

#define TYPE(type) (1u << (type))

/* Finds a member of one of the types. Returns 1; 0 if it is missing or null; -EINVAL with `what` it must be. */
static int find(const json_t *object, const char *key, unsigned types, const char *what,
		json_t **ret, struct error *err)
{
	json_t *value = json_object_get(object, key);
	if (!value || json_is_null(value))
		return 0;
	if (!(TYPE(json_typeof(value)) & types))
		return error_set(err, EINVAL, "%s: must be %s", key, what);
	*ret = value;
	return 1;
}

int json_read_string(const json_t *object, const char *key, const char **ret, struct error *err)
{
	json_t *value = NULL;
	int r = find(object, key, TYPE(JSON_STRING), "a string", &value, err);
	if (r > 0)
		*ret = json_string_value(value);
	return r;
}

int json_read_int(const json_t *object, const char *key, int64_t min, int64_t max, int64_t *ret,
		  struct error *err)
{
	json_t *value = NULL;
	int r = find(object, key, TYPE(JSON_INTEGER), "a whole number", &value, err);
	if (r <= 0)
		return r;
	int64_t number = json_integer_value(value);
	if (number < min || number > max)
		return error_set(err, EINVAL,
				 "%s: %" PRId64 ": must be from %" PRId64 " to %" PRId64, key,
				 number, min, max);
	*ret = number;
	return 1;
}

int json_read_number(const json_t *object, const char *key, double *ret, struct error *err)
{
	json_t *value = NULL;
	int r = find(object, key, TYPE(JSON_INTEGER) | TYPE(JSON_REAL), "a number", &value, err);
	if (r > 0)
		*ret = json_number_value(value);
	return r;
}

int json_read_bool(const json_t *object, const char *key, bool *ret, struct error *err)
{
	json_t *value = NULL;
	int r = find(object, key, TYPE(JSON_TRUE) | TYPE(JSON_FALSE), "true or false", &value, err);
	if (r > 0)
		*ret = json_is_true(value);
	return r;
}

int json_read_array(const json_t *object, const char *key, json_t **ret, struct error *err)
{
	return find(object, key, TYPE(JSON_ARRAY), "a list", ret, err);
}

json_t *json_clean_string(const char *text)
{
	cleanup_free char *copy = strdup(text);
	if (!copy)
		return NULL;
	text_clean(copy);
	return json_string(copy);
}
