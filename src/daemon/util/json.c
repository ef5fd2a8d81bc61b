#include "daemon/util/json.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/text.h"

static json_t *member(const json_t *object, const char *key)
{
	json_t *value = json_object_get(object, key);
	return json_is_null(value) ? NULL : value;
}

int json_read_string(const json_t *object, const char *key, const char **ret, struct error *err)
{
	json_t *value = member(object, key);
	if (!value)
		return 0;
	if (!json_is_string(value))
		return error_set(err, EINVAL, "%s: must be a string", key);
	*ret = json_string_value(value);
	return 1;
}

int json_read_int(const json_t *object, const char *key, int64_t min, int64_t max, int64_t *ret,
		  struct error *err)
{
	json_t *value = member(object, key);
	if (!value)
		return 0;
	if (!json_is_integer(value))
		return error_set(err, EINVAL, "%s: must be a whole number", key);
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
	json_t *value = member(object, key);
	if (!value)
		return 0;
	if (!json_is_number(value))
		return error_set(err, EINVAL, "%s: must be a number", key);
	*ret = json_number_value(value);
	return 1;
}

int json_read_bool(const json_t *object, const char *key, bool *ret, struct error *err)
{
	json_t *value = member(object, key);
	if (!value)
		return 0;
	if (!json_is_boolean(value))
		return error_set(err, EINVAL, "%s: must be true or false", key);
	*ret = json_is_true(value);
	return 1;
}

int json_read_array(const json_t *object, const char *key, json_t **ret, struct error *err)
{
	json_t *value = member(object, key);
	if (!value)
		return 0;
	if (!json_is_array(value))
		return error_set(err, EINVAL, "%s: must be a list", key);
	*ret = value;
	return 1;
}

json_t *json_clean_string(const char *text)
{
	cleanup_free char *copy = strdup(text);
	if (!copy)
		return NULL;
	text_clean(copy);
	return json_string(copy);
}
