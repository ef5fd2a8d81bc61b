#include "kube/own/live.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/parse.h"
#include "kube/gpu_manager/vcuda.h"
#include "kube/util/sanitize.h"

#define NAME_MAX_BYTES 320 /* size of an annotation's name: 253 bytes, '/', 63, and a NUL */
#define MIB (UINT64_C(1) << 20)
#define VALUE_MAX_BYTES 48
#define LIST_MAX_BYTES 256

static int store_memory(const char *text, size_t i, struct kube_live *live, struct error *err)
{
	return parse_size(text, &live->memory_bytes[i], err);
}

static int store_cores(const char *text, size_t i, struct kube_live *live, struct error *err)
{
	if (!strcmp(text, "0") || !strcmp(text, "0%")) {
		live->cores_pct[i] = 0;
		return 0;
	}
	return parse_cores(text, &live->cores_pct[i], err);
}

static int store_limit(const char *text, size_t i, struct kube_live *live, struct error *err)
{
	return parse_cores(text, &live->limit_pct[i], err);
}

static int parse_list(const char *text, struct kube_live *live, size_t *ret_count,
		      int (*store)(const char *, size_t, struct kube_live *, struct error *),
		      struct error *err)
{
	size_t count = 0;
	for (;;) {
		char value[VALUE_MAX_BYTES];
		text += strspn(text, " \t");
		size_t length = strcspn(text, ","), end = length;
		while (end && strchr(" \t", text[end - 1]))
			end--;
		if (end >= sizeof(value))
			return error_set(err, EINVAL, "'%.60s': a value must have at most %zu bytes",
					 text, sizeof(value) - 1);
		if (count == LIVE_VALUES_MAX)
			return error_set(err, EINVAL, "must have at most %d values",
					 LIVE_VALUES_MAX);
		memcpy(value, text, end);
		value[end] = '\0';
		int r = store(value, count, live, err);
		if (r < 0)
			return r;
		count++;
		if (!text[length])
			break;
		text += length + 1;
	}
	*ret_count = count;
	return 0;
}

static int read_memory(const char *text, struct kube_live *live, struct error *err)
{
	return parse_list(text, live, &live->memories, store_memory, err);
}

static int read_cores(const char *text, struct kube_live *live, struct error *err)
{
	return parse_list(text, live, &live->cores, store_cores, err);
}

static int read_limit(const char *text, struct kube_live *live, struct error *err)
{
	return parse_list(text, live, &live->limits, store_limit, err);
}

static int read_on_full(const char *text, struct kube_live *live, struct error *err)
{
	if (strcmp(text, "fail") != 0 && strcmp(text, "wait") != 0 && strcmp(text, "swap") != 0)
		return error_set(err, EINVAL, "'%.40s': must be fail, wait or swap", text);
	live->on_full = text;
	return 0;
}

static int read_sharing(const char *text, struct kube_live *live, struct error *err)
{
	bool is_space;
	int r = parse_sharing(text, &is_space, err);
	if (r >= 0)
		live->sharing = text;
	return r;
}

static int read_group(const char *text, struct kube_live *live, struct error *err)
{
	int r = parse_name(text, err);
	if (r >= 0)
		live->group = text;
	return r;
}

static int read_priority(const char *text, struct kube_live *live, struct error *err)
{
	int64_t priority;
	int r = parse_int(text, -PRIORITY_MOST, PRIORITY_MOST, &priority, err);
	if (r < 0)
		return r;
	live->has_priority = true;
	live->priority = (int)priority;
	return 0;
}

static const struct {
	const char *name;
	/* NULL if the annotation matters only before the container runs (vcuda.h, annotations.h) */
	int (*read)(const char *text, struct kube_live *live, struct error *err);
	/* error texts do not list it: only allot writes the annotation, or the webhook refuses it */
	bool is_unlisted;
} fields[] = {
	{ "memory", read_memory },     { "cores", read_cores },
	{ "cores-limit", read_limit }, { "on-full", read_on_full },
	{ "sharing", read_sharing },   { "priority", read_priority },
	{ "group", read_group },       { VCUDA_CARDS, NULL },
	{ KUBE_WORKLOAD, NULL },       { KUBE_PLACEMENT, NULL },
	{ KUBE_BORROWED, NULL, true }, { KUBE_ROOM_SINCE, NULL, true },
	{ KUBE_GANG, NULL },           { KUBE_GANG_SIZE, NULL },
	{ KUBE_DURATION, NULL, true }, { KUBE_CONCURRENCY, NULL, true },
};
#define FIELD_COUNT (sizeof(fields) / sizeof(fields[0]))

/* True for a name in the domain allot.dev. Its first *ret_owner bytes name a container; 0: for all containers. */
static bool is_ours(const char *name, size_t *ret_owner)
{
	const char *slash = strchr(name, '/');
	size_t length = slash ? (size_t)(slash - name) : 0, own = strlen(KUBE_LIVE_DOMAIN);
	if (length < own || memcmp(slash - own, KUBE_LIVE_DOMAIN, own) != 0)
		return false;
	if (length > own && slash[-(ptrdiff_t)own - 1] != '.')
		return false;
	*ret_owner = length > own ? length - own - 1 : 0;
	return true;
}

static bool has_container(const struct kube_pod *pod, const char *name, size_t length)
{
	for (size_t i = 0; i < pod->containers; i++)
		if (strlen(pod->container[i]) == length && !memcmp(pod->container[i], name, length))
			return true;
	return false;
}

static json_t *annotations_of(const struct kube_pod *pod)
{
	return json_object_get(json_object_get(pod->object, "metadata"), "annotations");
}

static int refuse_name(const char *name, struct error *err)
{
	char names[LIST_MAX_BYTES] = "";
	for (size_t i = 0, length = 0; i < FIELD_COUNT && length < sizeof(names); i++)
		if (!fields[i].is_unlisted)
			length += (size_t)snprintf(names + length, sizeof(names) - length, "%s%s",
						   length ? ", " : "", fields[i].name);
	return error_set(err, EINVAL, "%.100s: there is no such annotation: must be one of %s",
			 name, names);
}

static int check_name(const struct kube_pod *pod, const char *name, size_t owner, struct error *err)
{
	const char *field = strchr(name, '/') + 1;
	size_t i = 0;
	while (i < FIELD_COUNT && strcmp(fields[i].name, field) != 0)
		i++;
	if (i == FIELD_COUNT)
		return refuse_name(name, err);
	if (owner && !has_container(pod, name, owner))
		return error_set(err, EINVAL, "%.100s: the pod has no container '%.*s'", name,
				 owner > 64 ? 64 : (int)owner, name);
	return 0;
}

static int read_field(const struct kube_pod *pod, const char *container, size_t field,
		      struct kube_live *live, struct error *err)
{
	char own[NAME_MAX_BYTES], all[NAME_MAX_BYTES];
	snprintf(own, sizeof(own), "%s." KUBE_LIVE_DOMAIN "/%s", container, fields[field].name);
	snprintf(all, sizeof(all), KUBE_LIVE_DOMAIN "/%s", fields[field].name);
	const char *name = pod_annotation(pod, own) ? own : all;
	const char *text = pod_annotation(pod, name);
	int r = text ? fields[field].read(text, live, err) : 0;
	return r < 0 ? error_add(err, r, "%.100s", name) : 0;
}

int live_read(const struct kube_pod *pod, const char *container, struct kube_live *ret,
	      struct error *err)
{
	struct kube_live live = { 0 };
	const char *name;
	json_t *value;
	size_t owner;
	int r = 0;
	json_object_foreach(annotations_of(pod), name, value)
	{
		/* Skip values that are not strings, as live_text() does; the API server accepts only strings. */
		if (is_ours(name, &owner) && json_is_string(value))
			r = check_name(pod, name, owner, err);
		if (r < 0)
			return error_sanitize(err, r);
	}
	for (size_t i = 0; i < FIELD_COUNT; i++) {
		if (!fields[i].read)
			continue;
		r = read_field(pod, container, i, &live, err);
		if (r < 0)
			return error_sanitize(err, r);
	}
	*ret = live;
	return 0;
}

int live_read_sharing(const struct kube_pod *pod, const char *container, struct kube_live *ret,
		      struct error *err)
{
	struct kube_live live = { 0 };
	for (size_t i = 0; i < FIELD_COUNT; i++) {
		if (fields[i].read != read_sharing && fields[i].read != read_group)
			continue;
		int r = read_field(pod, container, i, &live, err);
		if (r < 0)
			return error_sanitize(err, r);
	}
	*ret = live;
	return 0;
}

static bool is_for(size_t values, size_t count)
{
	return values <= 1 || values == count;
}

struct kube_live_floor live_floor(const struct kube_pod *pod, const char *container, size_t count)
{
	struct kube_live live;
	struct kube_live_floor floor = { 0 };
	if (live_read(pod, container, &live, NULL) < 0 || !is_for(live.memories, count) ||
	    !is_for(live.cores, count) || !is_for(live.limits, count))
		return floor;
	for (size_t i = 0; i < live.memories; i++) {
		uint64_t mib = live.memory_bytes[i] / MIB + (live.memory_bytes[i] % MIB > 0);
		if (mib > floor.memory_mib)
			floor.memory_mib = mib;
	}
	for (size_t i = 0; i < live.cores; i++) {
		unsigned pct = (unsigned)live.cores_pct[i];
		pct += live.cores_pct[i] > pct;
		if (pct > floor.cores_pct)
			floor.cores_pct = pct;
	}
	return floor;
}

char *live_text(const struct kube_pod *pod)
{
	char *text = NULL;
	size_t size, owner;
	const char *name;
	json_t *value;
	FILE *out = open_memstream(&text, &size);
	if (!out)
		return NULL;
	json_object_foreach(annotations_of(pod), name, value)
	{
		if (is_ours(name, &owner) && json_is_string(value))
			fprintf(out, "%s=%s\n", name, json_string_value(value));
	}
	if (fclose(out) != 0) {
		free(text);
		return NULL;
	}
	return text;
}
