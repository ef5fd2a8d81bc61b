#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "kube/gpu_manager/vcuda.h"
#include "kube/hami/annotations.h"
#include "kube/hami/priority.h"
#include "kube/util/quantity.h"
#include "scheduler/webhook/webhook.h"
#include "scheduler/webhook/webhook_inside.h"

#define MIB (INT64_C(1) << 20)
#define GPUS_MAX 1024
#define MEMORY_MAX_MIB (MIB - 1) /* no GPU has 1 TiB, so larger values are bytes */
#define PCT_MAX 100
#define CORES_MAX (VCUDA_MAX_CARDS * VCUDA_CORES_WHOLE)

/*
 * The valid values of a resource. `name`: offset of its name in struct webhook_terms. A value above `max` and at least MIB is
 * taken as bytes, and converted to units of `byte_unit` bytes (0: never).
 */
static const struct row {
	size_t name;
	int64_t min, max, byte_unit;
	const char *right;
} rows[RESOURCE_COUNT] = {
#define AT(field) offsetof(struct webhook_terms, field)
	[RESOURCE_GPU] = { AT(gpu), 0, GPUS_MAX, 0, "a whole number of GPUs up to 1024, such as 1" },
	[RESOURCE_MEMORY] = { AT(memory), 1, MEMORY_MAX_MIB, MIB,
			      "a whole number of MiB up to 1048575, such as 8192" },
	[RESOURCE_MEMORY_PCT] = { AT(memory_pct), 1, PCT_MAX, 0,
				  "1 to 100, percent of a GPU's memory" },
	[RESOURCE_CORES] = { AT(cores), 0, PCT_MAX, 0, "0 to 100, percent of a GPU's time" },
	[RESOURCE_PRIORITY] = { AT(priority), 0, 1, 0, "0 (high) or 1 (low)" },
	[RESOURCE_VCUDA_CORES] = { AT(vcuda_cores), 0, CORES_MAX, 0,
				   "hundredths of a GPU's time: up to 100, or a multiple of 100" },
	[RESOURCE_VCUDA_MEMORY] = { AT(vcuda_memory), 0, VCUDA_MAX_UNITS, (int64_t)VCUDA_UNIT_BYTES,
				    "units of 256 MiB up to 1000000, such as 32 for 8 GiB, or bytes, "
				    "such as 8Gi" },
#undef AT
};

const char *webhook_resource_name(const struct webhook_terms *terms, enum webhook_resource resource)
{
	return *(const char *const *)(const void *)((const char *)terms + rows[resource].name);
}

static const char *name_of(const struct webhook_work *w, enum webhook_resource resource)
{
	return webhook_resource_name(w->terms, resource);
}

static int blame_container(struct webhook_work *w, const struct webhook_container *c, int result)
{
	return error_add(w->err, result, "container %.63s", c->name);
}

/* Reads the limit or, if missing, the request. (Kubernetes later rejects a request without a limit.) */
static int read_request(struct webhook_work *w, struct webhook_container *c,
			enum webhook_resource resource)
{
	const struct row *row = &rows[resource];
	const char *name = name_of(w, resource);
	const json_t *resources = json_object_get(c->object, "resources");
	const json_t *value = json_object_get(json_object_get(resources, "limits"), name);
	struct error why = { 0 };
	int64_t number;
	if (!value)
		value = json_object_get(json_object_get(resources, "requests"), name);
	if (!value)
		return 0;
	int r = quantity_read_any(value, &number, &why);
	bool is_bytes = r >= 0 && row->byte_unit && number > row->max && number >= MIB;
	if (r >= 0 && !is_bytes && (number < row->min || number > row->max))
		r = error_set(&why, EINVAL, "'%" PRId64 "'", number);
	if (r >= 0 && is_bytes && (number - 1) / row->byte_unit + 1 > row->max)
		r = error_set(&why, EINVAL, "'%" PRId64 "' bytes", number);
	if (r < 0) {
		error_set(w->err, EINVAL, "%.120s: %.120s: must be %s", name, why.text, row->right);
		return blame_container(w, c, -EINVAL);
	}
	c->has[resource] = true;
	c->value[resource] = number;
	return 0;
}

int webhook_read_requests(struct webhook_work *w)
{
	struct error *err = w->err, first = { 0 };
	int result = 0;
	for (size_t i = 0; i < w->containers; i++) {
		struct webhook_container *c = &w->container[i];
		for (enum webhook_resource k = 0; k < RESOURCE_COUNT; k++) {
			w->err = result < 0 ? NULL : &first;
			int r = read_request(w, c, k);
			if (k != RESOURCE_PRIORITY && (r < 0 || c->value[k] > 0))
				c->requests_gpu = true;
			result = result < 0 ? result : r;
		}
	}
	w->err = err;
	*err = first;
	return result;
}

/* Writes the value to limits and requests, which must be equal. */
static void put(struct webhook_work *w, struct webhook_container *c, enum webhook_resource resource,
		int64_t value)
{
	static const char *const kinds[] = { "limits", "requests" };
	json_t *resources = json_patch_member(&w->patch, c->object, c->path, "resources",
					      json_object());
	char text[24], path[WEBHOOK_PATH_SIZE], inside[WEBHOOK_PATH_SIZE];
	snprintf(text, sizeof(text), "%" PRId64, value);
	snprintf(path, sizeof(path), "%s/resources", c->path);
	for (size_t i = 0; resources && i < 2; i++) {
		json_t *kind = json_patch_member(&w->patch, resources, path, kinds[i],
						 json_object());
		snprintf(inside, sizeof(inside), "%s/resources/%s", c->path, kinds[i]);
		if (kind)
			json_patch_put(&w->patch, kind, inside, name_of(w, resource),
				       json_string(text));
	}
	c->has[resource] = true;
	c->value[resource] = value;
}

/* Converts a value that is too large for its unit: it must have been meant in bytes. Adds a warning. */
static void convert_bytes(struct webhook_work *w, struct webhook_container *c,
			  enum webhook_resource resource)
{
	const struct row *row = &rows[resource];
	int64_t bytes = c->value[resource];
	if (!c->has[resource] || !row->byte_unit || bytes <= row->max)
		return;
	int64_t units = (bytes - 1) / row->byte_unit + 1;
	put(w, c, resource, units);
	webhook_warn(w,
		     "container %.63s: %.100s: %" PRId64 " is more than %" PRId64
		     ", so it is read as bytes and replaced by %" PRId64 " (units of %" PRId64
		     " MiB)",
		     c->name, name_of(w, resource), bytes, row->max, units, row->byte_unit / MIB);
}

static void add_hami_defaults(struct webhook_work *w, struct webhook_container *c)
{
	const struct webhook_terms *t = w->terms;
	if (!c->has[RESOURCE_GPU])
		put(w, c, RESOURCE_GPU, t->default_gpus ? t->default_gpus : 1);
	if (!c->has[RESOURCE_MEMORY] && !c->has[RESOURCE_MEMORY_PCT] && t->default_memory_bytes)
		put(w, c, RESOURCE_MEMORY, (int64_t)((t->default_memory_bytes - 1) / MIB + 1));
	if (!c->has[RESOURCE_CORES] && t->default_cores)
		put(w, c, RESOURCE_CORES, t->default_cores);
}

static void add_vcuda_defaults(struct webhook_work *w, struct webhook_container *c)
{
	const struct webhook_terms *t = w->terms;
	if (!c->value[RESOURCE_VCUDA_CORES] && t->default_cores)
		put(w, c, RESOURCE_VCUDA_CORES, t->default_cores);
	/* Shares of cards get the default memory; whole cards have all of their memory. */
	if (!c->value[RESOURCE_VCUDA_MEMORY] &&
	    c->value[RESOURCE_VCUDA_CORES] % VCUDA_CORES_WHOLE && t->default_memory_bytes)
		put(w, c, RESOURCE_VCUDA_MEMORY,
		    (int64_t)((t->default_memory_bytes - 1) / VCUDA_UNIT_BYTES + 1));
}

/* Sets the environment variable from which HAMi-core reads the priority. The container's own entries for it are replaced. */
static void put_priority(struct webhook_work *w, struct webhook_container *c)
{
	char text[24], path[WEBHOOK_PATH_SIZE];
	if (!c->has[RESOURCE_PRIORITY])
		return;
	snprintf(text, sizeof(text), "%" PRId64, c->value[RESOURCE_PRIORITY]);
	snprintf(path, sizeof(path), "%s/env", c->path);
	json_t *list = json_patch_member(&w->patch, c->object, c->path, "env", json_array());
	if (!list)
		return;
	for (size_t i = json_array_size(list); i-- > 0;) {
		const char *name = json_string_value(
			json_object_get(json_array_get(list, i), "name"));
		if (name && !strcmp(name, KUBE_PRIORITY_ENV))
			json_patch_remove_at(&w->patch, list, path, i);
	}
	json_patch_append(&w->patch, list, path,
			  json_pack("{s:s,s:s}", "name", KUBE_PRIORITY_ENV, "value", text));
}

static bool is_hami(const struct webhook_container *c)
{
	return c->has[RESOURCE_GPU] || c->has[RESOURCE_MEMORY] || c->has[RESOURCE_MEMORY_PCT] ||
	       c->has[RESOURCE_CORES];
}

static bool is_vcuda(const struct webhook_container *c)
{
	return c->value[RESOURCE_VCUDA_CORES] || c->value[RESOURCE_VCUDA_MEMORY];
}

static bool has_cards(const struct webhook_work *w, const struct webhook_container *c)
{
	char own[128];
	snprintf(own, sizeof(own), "%.63s." KUBE_LIVE_DOMAIN "/" VCUDA_CARDS, c->name);
	return webhook_meta(w, "annotations", own) ||
	       webhook_meta(w, "annotations", KUBE_LIVE_DOMAIN "/" VCUDA_CARDS);
}

static int check_vcuda(struct webhook_work *w, const struct webhook_container *c)
{
	const char *cores_name = name_of(w, RESOURCE_VCUDA_CORES);
	const char *memory_name = name_of(w, RESOURCE_VCUDA_MEMORY);
	int64_t cores = c->value[RESOURCE_VCUDA_CORES];
	if (!cores)
		return error_set(w->err, EINVAL, "%.100s is requested without %.100s: request both",
				 memory_name, cores_name);
	if (cores > VCUDA_CORES_WHOLE && cores % VCUDA_CORES_WHOLE && !has_cards(w, c))
		return error_set(w->err, EINVAL, "%.100s: '%" PRId64 "': must be %s", cores_name,
				 cores, rows[RESOURCE_VCUDA_CORES].right);
	if (cores % VCUDA_CORES_WHOLE && !c->value[RESOURCE_VCUDA_MEMORY])
		return error_set(w->err, EINVAL,
				 "%.100s: '%" PRId64 "': a part of a GPU needs %.100s too",
				 cores_name, cores, memory_name);
	if (w->terms->needs_both && !c->value[RESOURCE_VCUDA_MEMORY])
		return error_set(w->err, EACCES,
				 "%.100s is requested without %.100s: this cluster requires both",
				 cores_name, memory_name);
	return 0;
}

static int check_hami(struct webhook_work *w, const struct webhook_container *c)
{
	bool has_memory = c->value[RESOURCE_MEMORY] || c->value[RESOURCE_MEMORY_PCT];
	if (!c->value[RESOURCE_GPU])
		return error_set(
			w->err, EINVAL,
			"%.100s: '0': must be 1 or more when other GPU resources are requested",
			name_of(w, RESOURCE_GPU));
	if (w->terms->needs_both && !has_memory)
		return error_set(
			w->err, EACCES,
			"%.100s (or %.100s) must be requested too, beside %.100s: this cluster requires both",
			name_of(w, RESOURCE_MEMORY), name_of(w, RESOURCE_MEMORY_PCT),
			name_of(w, RESOURCE_CORES));
	if (w->terms->needs_both && !c->value[RESOURCE_CORES])
		return error_set(
			w->err, EACCES,
			"%.100s must be requested too, beside memory: this cluster requires both",
			name_of(w, RESOURCE_CORES));
	return 0;
}

static int complete(struct webhook_work *w, struct webhook_container *c)
{
	if (is_hami(c) && is_vcuda(c))
		return error_set(w->err, EINVAL,
				 "requests both %.100s and %.100s: use resources of one kind only",
				 name_of(w, c->value[RESOURCE_VCUDA_CORES] ? RESOURCE_VCUDA_CORES
									   : RESOURCE_VCUDA_MEMORY),
				 name_of(w, RESOURCE_GPU));
	convert_bytes(w, c, RESOURCE_MEMORY);
	convert_bytes(w, c, RESOURCE_VCUDA_MEMORY);
	if (is_vcuda(c))
		add_vcuda_defaults(w, c);
	else
		add_hami_defaults(w, c);
	if (c->value[RESOURCE_MEMORY] && c->value[RESOURCE_MEMORY_PCT])
		webhook_warn(w, "container %.63s: %.100s is ignored, since %.100s is requested",
			     c->name, name_of(w, RESOURCE_MEMORY_PCT), name_of(w, RESOURCE_MEMORY));
	put_priority(w, c);
	return is_vcuda(c) ? check_vcuda(w, c) : check_hami(w, c);
}

/* Memory of all the container's GPUs in MiB; 0 if not requested in MiB. */
static int64_t memory_of(const struct webhook_container *c)
{
	if (is_vcuda(c))
		return c->value[RESOURCE_VCUDA_MEMORY] * (int64_t)(VCUDA_UNIT_BYTES / MIB);
	return c->value[RESOURCE_GPU] * c->value[RESOURCE_MEMORY];
}

/* Compute of all the container's GPUs in percent. A number of GPUs alone means whole GPUs. */
static int64_t cores_of(const struct webhook_container *c)
{
	bool is_whole = !c->has[RESOURCE_MEMORY] && !c->has[RESOURCE_MEMORY_PCT] &&
			!c->has[RESOURCE_CORES];
	if (is_vcuda(c))
		return c->value[RESOURCE_VCUDA_CORES];
	return c->value[RESOURCE_GPU] * (is_whole ? PCT_MAX : c->value[RESOURCE_CORES]);
}

/* Returns the least number of shares of GPUs that the container needs. */
static int64_t gpus_of(const struct webhook_container *c)
{
	if (is_vcuda(c))
		return (c->value[RESOURCE_VCUDA_CORES] - 1) / VCUDA_CORES_WHOLE + 1;
	return c->value[RESOURCE_GPU];
}

/*
 * Adds up of() over the containers that run at the same time, and returns the largest such sum. As Kubernetes counts (KEP-753):
 * all sidecars and main containers, or one init container with the sidecars that started before it.
 */
static int64_t peak(const struct webhook_work *w, int64_t (*of)(const struct webhook_container *c))
{
	int64_t init = 0, sum = 0;
	for (size_t i = 0; i < w->containers; i++) {
		const struct webhook_container *c = &w->container[i];
		if (c->is_init)
			init = sum + of(c) > init ? sum + of(c) : init;
		else
			sum += of(c);
	}
	return init > sum ? init : sum;
}

static const struct {
	enum webhook_resource resource;
	int64_t (*of)(const struct webhook_container *c);
} quota_rows[QUOTA_KINDS] = {
	[QUOTA_MEMORY] = { RESOURCE_MEMORY, memory_of },
	[QUOTA_CORES] = { RESOURCE_CORES, cores_of },
	[QUOTA_GPUS] = { RESOURCE_GPU, gpus_of },
};

static int check_quota(struct webhook_work *w)
{
	struct webhook_quota quota = { 0 };
	if (!w->terms->quota || !w->terms->quota(w->terms->data, w->pod_namespace, &quota))
		return 0;
	const struct quota_limits left = quota_left(&quota.limits, &quota.used);
	for (int k = 0; w->terms->device_class && k < QUOTA_KINDS; k++)
		if (quota.limits.has[k])
			return error_set(
				w->err, EACCES,
				"namespace %.63s: a ResourceQuota limits %.100s. Pods here get "
				"ResourceClaims, and that quota does not count claims: limit "
				"%.100s.deviceclass.resource.k8s.io/devices instead",
				w->pod_namespace, name_of(w, quota_rows[k].resource),
				w->terms->device_class);
	for (int k = 0; k < QUOTA_KINDS; k++) {
		uint64_t asked = (uint64_t)peak(w, quota_rows[k].of);
		if (quota.limits.has[k] && asked > left.most[k])
			return error_set(w->err, EACCES,
					 "exceeding resource quota: namespace %.63s: the pod "
					 "asks for %" PRIu64 " of %.100s, but only %" PRIu64
					 " of %" PRIu64 " are left",
					 w->pod_namespace, asked, name_of(w, quota_rows[k].resource),
					 left.most[k], quota.limits.most[k]);
	}
	return 0;
}

int webhook_complete_requests(struct webhook_work *w)
{
	for (size_t i = 0; i < w->containers; i++) {
		struct webhook_container *c = &w->container[i];
		int r = c->requests_gpu ? complete(w, c) : 0;
		if (r < 0)
			return blame_container(w, c, r);
	}
	return check_quota(w);
}
