#include "kube/dra/dra_terms.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/parse.h"
#include "kube/util/sanitize.h"

static const char *text_of(const json_t *value)
{
	const char *text = json_string_value(value);
	return text && strlen(text) == json_string_length(value) ? text : NULL;
}

/* A number such as 60, or a string such as "60%". */
static int read_cores_limit(const json_t *value, struct dra_terms *terms, struct error *err)
{
	char number[32];
	const char *text = text_of(value);
	if (json_is_number(value)) {
		snprintf(number, sizeof(number), "%.15g%%", json_number_value(value));
		text = number;
	}
	if (!text)
		return error_set(err, EINVAL, "must be a percentage, such as 60");
	int r = parse_percent(text, &terms->cores_limit_pct, err);
	terms->has_cores_limit |= r >= 0;
	return r;
}

static int read_priority(const json_t *value, struct dra_terms *terms, struct error *err)
{
	json_int_t priority = json_integer_value(value);
	if (!json_is_integer(value) || priority < -PRIORITY_MOST || priority > PRIORITY_MOST)
		return error_set(err, EINVAL, "must be a whole number from -100 to 100");
	terms->has_priority = true;
	terms->priority = (int)priority;
	return 0;
}

static int read_on_full(const json_t *value, struct dra_terms *terms, struct error *err)
{
	const char *text = text_of(value);
	if (!text ||
	    (strcmp(text, "fail") != 0 && strcmp(text, "wait") != 0 && strcmp(text, "swap") != 0))
		return error_set(err, EINVAL, "'%.40s': must be fail, wait or swap",
				 text ? text : "");
	strcpy(terms->on_full, text);
	return 0;
}

static int read_sharing(const json_t *value, struct dra_terms *terms, struct error *err)
{
	const char *text = text_of(value);
	bool is_space;
	int r = parse_sharing(text ? text : "", &is_space, err);
	if (r >= 0)
		strcpy(terms->sharing, text);
	return r;
}

static int read_group(const json_t *value, struct dra_terms *terms, struct error *err)
{
	const char *text = text_of(value);
	int r = parse_name(text ? text : "", err);
	if (r >= 0)
		strcpy(terms->group, text);
	return r;
}

static const struct {
	const char *name;
	int (*read)(const json_t *value, struct dra_terms *terms, struct error *err);
} fields[] = {
	{ "coresLimit", read_cores_limit },
	{ "priority", read_priority },
	{ "onFull", read_on_full },
	{ "sharing", read_sharing },
	{ "group", read_group },
};
#define FIELD_COUNT (sizeof(fields) / sizeof(fields[0]))

static int check_type(const json_t *parameters, struct error *err)
{
	const char *version = text_of(json_object_get(parameters, "apiVersion"));
	const char *kind = text_of(json_object_get(parameters, "kind"));
	if (version && kind && !strcmp(version, DRA_TERMS_VERSION) && !strcmp(kind, DRA_TERMS_KIND))
		return 0;
	return error_set(err, EINVAL,
			 "apiVersion and kind must be " DRA_TERMS_VERSION " and " DRA_TERMS_KIND
			 ", not '%.40s' and '%.40s'",
			 version ? version : "", kind ? kind : "");
}

static int read_field(const char *name, const json_t *value, struct dra_terms *terms,
		      struct error *err)
{
	for (size_t i = 0; i < FIELD_COUNT; i++)
		if (!strcmp(fields[i].name, name)) {
			int r = fields[i].read(value, terms, err);
			return r < 0 ? error_add(err, r, "%s", name) : 0;
		}
	return error_set(
		err, EINVAL,
		"%.40s: there is no such field: must be coresLimit, priority, onFull, sharing or "
		"group",
		name);
}

int dra_terms_add(const json_t *parameters, struct dra_terms *terms, struct error *err)
{
	struct dra_terms parsed = *terms;
	const char *name;
	json_t *value;
	int r = check_type(parameters, err);
	json_object_foreach((json_t *)parameters, name, value)
	{
		if (r >= 0 && strcmp(name, "apiVersion") != 0 && strcmp(name, "kind") != 0)
			r = read_field(name, value, &parsed, err);
	}
	if (r < 0)
		return error_sanitize(err, error_add(err, -EINVAL, DRA_TERMS_KIND));
	*terms = parsed;
	return 0;
}
