#include "scheduler/request/quota.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "kube/util/quantity.h"

#define LIMITS "limits."
#define REQUESTS "requests."

const char *quota_resource(const struct request_terms *terms, enum quota_kind kind)
{
	switch (kind) {
	case QUOTA_MEMORY: return terms->memory;
	case QUOTA_CORES: return terms->cores;
	default: return terms->count;
	}
}

static int read_limit(const json_t *hard, const char *prefix, const char *resource,
		      enum quota_kind kind, struct quota_limits *limits, struct error *err)
{
	struct quota_limits one = { 0 };
	char key[300];
	snprintf(key, sizeof(key), "%s%s", prefix, resource);
	const json_t *value = json_object_get(hard, key);
	if (!value)
		return 0;
	int r = quantity_read(value, INT64_MAX, &one.most[kind], err);
	if (r < 0)
		return error_add(err, r, "spec.hard: %.120s", key);
	one.has[kind] = true;
	quota_tighten(limits, &one);
	return 0;
}

int quota_read(const json_t *object, const struct request_terms *terms, struct quota_limits *ret,
	       struct error *err)
{
	const json_t *hard = json_object_get(json_object_get(object, "spec"), "hard");
	struct quota_limits limits = { 0 };
	int r = 0;
	if (hard && !json_is_null(hard) && !json_is_object(hard))
		return error_set(err, EINVAL, "spec.hard: must be an object");
	for (enum quota_kind kind = 0; kind < QUOTA_KINDS && r >= 0; kind++) {
		const char *resource = quota_resource(terms, kind);
		r = read_limit(hard, LIMITS, resource, kind, &limits, err);
		if (r >= 0 && kind != QUOTA_GPUS)
			r = read_limit(hard, REQUESTS, resource, kind, &limits, err);
	}
	if (r >= 0)
		*ret = limits;
	return r;
}

void quota_tighten(struct quota_limits *limits, const struct quota_limits *by)
{
	for (int k = 0; k < QUOTA_KINDS; k++)
		if (by->has[k] && !(limits->has[k] && limits->most[k] <= by->most[k])) {
			limits->has[k] = true;
			limits->most[k] = by->most[k];
		}
}

struct quota_limits quota_left(const struct quota_limits *limits, const struct quota_amounts *used)
{
	struct quota_limits left = *limits;
	for (int k = 0; k < QUOTA_KINDS; k++)
		left.most[k] -= left.most[k] < used->of[k] ? left.most[k] : used->of[k];
	return left;
}

bool quota_has_limits(const struct quota_limits *limits)
{
	for (int k = 0; k < QUOTA_KINDS; k++)
		if (limits->has[k])
			return true;
	return false;
}

bool quota_allows(const struct quota_limits *limits, const struct quota_amounts *amounts)
{
	for (int k = 0; k < QUOTA_KINDS; k++)
		if (limits->has[k] && amounts->of[k] > limits->most[k])
			return false;
	return true;
}

bool quota_allows_more(const struct quota_limits *limits, const struct quota_limits *before)
{
	for (int k = 0; k < QUOTA_KINDS; k++)
		if (before->has[k] && (!limits->has[k] || limits->most[k] > before->most[k]))
			return true;
	return false;
}

void quota_add(struct quota_amounts *to, const struct quota_amounts *by)
{
	for (int k = 0; k < QUOTA_KINDS; k++)
		to->of[k] += by->of[k];
}

void quota_subtract(struct quota_amounts *from, const struct quota_amounts *by)
{
	for (int k = 0; k < QUOTA_KINDS; k++)
		from->of[k] -= by->of[k];
}
