/*
 * Makes the spec of the ResourceClaim that replaces a container's GPU limits (resource.k8s.io/v1): its requests with selectors
 * (CEL), its constraints, and its GpuTerms, which are parameters for allot's own DRA driver (kube/dra/dra_terms.h).
 */
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "kube/dra/dra_names.h"
#include "kube/dra/dra_terms.h"
#include "kube/hami/annotations.h"
#include "kube/hami/priority.h"
#include "kube/own/live.h"
#include "scheduler/request/pod_request.h"
#include "scheduler/request/request_annotations.h"
#include "scheduler/webhook/webhook.h"
#include "scheduler/webhook/webhook_inside.h"

#define OWN(name) KUBE_LIVE_DOMAIN "/" name
#define MIB (UINT64_C(1) << 20)
#define GPUS_MAX 16        /* limit per container */
#define ALTERNATIVES_MAX 8 /* limit per request, set by the API server */
#define ATTRIBUTES "device.attributes[\"" DRA_DRIVER "\"]"
#define EXPRESSION_MAX 2048

struct conversion {
	struct webhook_work *w;
	const struct request *request;
	const struct request_part *part;
	struct kube_live live;
	double limit_pct[LIVE_VALUES_MAX]; /* limits of compute per GPU */
	/* number of values in limit_pct: 0, 1 (the same for all GPUs), or one per GPU */
	size_t limits;
	int priority;
	bool has_priority;
};

int webhook_check_sayable(struct webhook_work *w, const struct request *request)
{
	static const char *const ignored[] = { REQUEST_GPU_POLICY, REQUEST_NODE_POLICY,
					       REQUEST_WEIGHTS };
	const char *placement = webhook_meta(w, "annotations", OWN(KUBE_PLACEMENT));
	if (request->is_mutex)
		return error_set(w->err, EINVAL,
				 REQUEST_GPU_POLICY
				 ": mutex: a ResourceClaim can't keep other pods off a "
				 "GPU: ask for all of the GPU's memory");
	if (webhook_meta(w, "annotations", OWN(KUBE_GANG)))
		return error_set(w->err, EINVAL,
				 OWN(KUBE_GANG) ": pods with ResourceClaims are placed by the "
						"cluster's own scheduler, one by one: use Kueue, or "
						"take the annotation away");
	if (placement && !strcmp(placement, "use"))
		return error_set(
			w->err, EINVAL,
			OWN(KUBE_PLACEMENT) ": 'use': must be 'guarantee', because pods with "
					    "ResourceClaims are placed by their guarantees");
	for (size_t i = 0; i < sizeof(ignored) / sizeof(*ignored); i++)
		if (webhook_meta(w, "annotations", ignored[i]))
			webhook_warn(w,
				     "annotation %s: is ignored: the cluster's own scheduler "
				     "places ResourceClaims",
				     ignored[i]);
	return 0;
}

/* Writes words as a list of CEL strings. Rejects characters that could end a string. */
static int put_words(struct webhook_work *w, const struct place_words *words, bool is_small,
		     FILE *out)
{
	for (size_t i = 0; i < words->count; i++) {
		const char *word = words->word[i];
		for (const char *c = word; *c; c++)
			if (!isalnum((unsigned char)*c) && !strchr(" -_./():", *c))
				return error_set(w->err, EINVAL,
						 "'%.60s': must have only letters, digits, blanks and "
						 "-_./():",
						 word);
		fputs(i ? ", \"" : "\"", out);
		for (const char *c = word; *c; c++)
			fputc(is_small ? tolower((unsigned char)*c) : *c, out);
		fputc('"', out);
	}
	return 0;
}

static int add_selector(struct webhook_work *w, json_t *selectors, const char *before,
			const struct place_words *words, bool is_small, const char *after)
{
	char text[EXPRESSION_MAX] = "";
	if (words && !words->count)
		return 0;
	FILE *out = fmemopen(text, sizeof(text), "w");
	if (!out)
		return error_set_errno(w->err, ENOMEM, "selector");
	fputs(before, out);
	int r = words ? put_words(w, words, is_small, out) : 0;
	fputs(after, out);
	bool is_cut = fflush(out) != 0 || ferror(out);
	fclose(out);
	if (r >= 0 && is_cut)
		r = error_set(
			w->err, EINVAL,
			"the list of GPU names or UUIDs is too long: the claim's CEL selector must have at most %d bytes",
			EXPRESSION_MAX - 1);
	if (r >= 0 &&
	    json_array_append_new(selectors, json_pack("{s:{s:s}}", "cel", "expression", text)) < 0)
		r = error_set_errno(w->err, ENOMEM, "selector");
	return r;
}

static int add_mode(const struct conversion *c, json_t *selectors)
{
	const char *mode = c->request->mode;
	if (!mode || strstr(mode, "hami-core"))
		return 0;
	if (!strstr(mode, "mig"))
		return error_set(c->w->err, EINVAL,
				 REQUEST_MODE ": '%.40s': must be hami-core or mig", mode);
	return add_selector(c->w, selectors, ATTRIBUTES ".type == \"mig\"", NULL, false, "");
}

/* As in place_request.c: a type matches any part of the product name, in small or capital letters; a UUID must be equal. */
static int add_selectors(const struct conversion *c, json_t *selectors)
{
	static const char matches[] = "].exists(part, " ATTRIBUTES
				      ".productName.lowerAscii().contains(part))";
	const struct place_request *place = &c->part->place;
	struct webhook_work *w = c->w;
	int r = add_selector(w, selectors, "[", &c->request->use_type, true, matches);
	if (r < 0)
		return error_add(w->err, r, REQUEST_USE_TYPE);
	r = add_selector(w, selectors, "![", &c->request->nouse_type, true, matches);
	if (r < 0)
		return error_add(w->err, r, REQUEST_NOUSE_TYPE);
	r = add_selector(w, selectors, ATTRIBUTES ".uuid in [", &place->use_uuid, false, "]");
	if (r < 0)
		return error_add(w->err, r, REQUEST_USE_UUID);
	r = add_selector(w, selectors, "!(" ATTRIBUTES ".uuid in [", &place->nouse_uuid, false,
			 "])");
	if (r < 0)
		return error_add(w->err, r, REQUEST_NOUSE_UUID);
	/* Several GPUs must be whole ones: CUDA does not show a program a MIG instance together with another GPU. */
	if (place->count > 1)
		r = add_selector(w, selectors, ATTRIBUTES ".type == \"gpu\"", NULL, false, "");
	return r < 0 ? r : add_mode(c, selectors);
}

/* Makes a request for one GPU. If memory_mib is 0, the request names no memory, which means all memory. */
static json_t *make_exactly(const struct conversion *c, uint64_t memory_mib, double cores_pct,
			    const json_t *selectors)
{
	cleanup_json json_t *amounts = json_object(), *exactly = NULL;
	char text[32];
	exactly = json_pack("{s:s}", "deviceClassName", c->w->terms->device_class);
	if (memory_mib) {
		snprintf(text, sizeof(text), "%" PRIu64 "Mi", memory_mib);
		json_object_set_new(amounts, DRA_MEMORY, json_string(text));
	}
	if (cores_pct > 0) {
		snprintf(text, sizeof(text), "%.0f", ceil(cores_pct));
		json_object_set_new(amounts, DRA_CORES, json_string(text));
	}
	if (json_object_size(amounts))
		json_object_set_new(exactly, "capacity", json_pack("{s:O}", "requests", amounts));
	if (json_array_size(selectors))
		json_object_set_new(exactly, "selectors", json_deep_copy(selectors));
	return json_incref(exactly);
}

/* A percentage is a different amount on each size of GPU: adds an alternative for each size. */
static int add_alternatives(const struct conversion *c, double cores_pct, const json_t *selectors,
			    json_t *request)
{
	struct webhook_work *w = c->w;
	const char *resource = w->terms->memory_pct;
	const json_t *sizes = w->claims->sizes_mib, *size;
	cleanup_json json_t *list = json_array();
	size_t i;
	if (!sizes) {
		w->claims->needs_sizes = true;
		return -ENODATA;
	}
	if (!json_array_size(sizes) || json_array_size(sizes) > ALTERNATIVES_MAX)
		return error_set(
			w->err, EINVAL,
			"%.100s: can't be used: the cluster's GPUs have %zu different memory sizes, "
			"and percentages work with 1 to %d sizes only: %s with %.100s",
			resource, json_array_size(sizes), ALTERNATIVES_MAX,
			json_array_size(sizes) ? "ask for MiB"
					       : "check that there are ResourceSlices of " DRA_DRIVER
						 ", or ask for MiB",
			w->terms->memory);
	json_array_foreach((json_t *)sizes, i, size)
	{
		uint64_t mib = (uint64_t)json_integer_value(size);
		uint64_t part = mib * c->part->place.memory_pct / 100;
		char name[32], expression[160];
		cleanup_json json_t *all = json_deep_copy(selectors);
		snprintf(name, sizeof(name), "size-%zu", i);
		snprintf(expression, sizeof(expression),
			 ATTRIBUTES ".type == \"gpu\" && " ATTRIBUTES ".memoryMiB == %" PRIu64, mib);
		int r = add_selector(w, all, expression, NULL, false, "");
		if (r < 0)
			return r;
		json_t *exactly = make_exactly(c, part ? part : 1, cores_pct, all);
		json_object_set_new(exactly, "name", json_string(name));
		if (json_array_append_new(list, exactly) < 0)
			return error_set_errno(w->err, ENOMEM, "claim");
	}
	json_object_set(request, "firstAvailable", list);
	return 0;
}

/* The value for GPU i; a single value is for all GPUs. */
#define VALUE(values, count, i) ((values)[(count) > 1 ? (i) : 0])

static int make_request(const struct conversion *c, unsigned gpu, const json_t *selectors,
			json_t **ret)
{
	const struct place_request *place = &c->part->place;
	const struct kube_live *live = &c->live;
	bool is_pct = place->memory == PLACE_MEMORY_PCT && place->memory_pct < 100;
	uint64_t memory_bytes = place->memory == PLACE_MEMORY_BYTES ? place->memory_bytes : 0;
	double cores_pct = place->cores_mpct / 1000.0;
	char name[16] = "gpu";
	if (place->count > 1)
		snprintf(name, sizeof(name), "gpu-%u", gpu);
	if (live->memories) {
		memory_bytes = VALUE(live->memory_bytes, live->memories, gpu);
		is_pct = false;
	}
	if (live->cores)
		cores_pct = VALUE(live->cores_pct, live->cores, gpu);
	if (cores_pct > 100)
		cores_pct = 100;
	if (c->limits && VALUE(c->limit_pct, c->limits, gpu) < cores_pct)
		return error_set(c->w->err, EINVAL,
				 "a limit of %g %% is less than the %g %% of a GPU's time that are "
				 "requested: raise the limit, or request less",
				 VALUE(c->limit_pct, c->limits, gpu), cores_pct);
	cleanup_json json_t *request = json_pack("{s:s}", "name", name);
	int r = 0;
	if (is_pct)
		r = add_alternatives(c, cores_pct, selectors, request);
	else
		json_object_set_new(request, "exactly",
				    make_exactly(c, memory_bytes / MIB + (memory_bytes % MIB > 0),
						 cores_pct, selectors));
	if (r >= 0)
		*ret = json_incref(request);
	return r;
}

static json_t *number(double value)
{
	return value == floor(value) ? json_integer((json_int_t)value) : json_real(value);
}

/* Adds `fields` to `config`, unless empty, as parameters of one request (NULL: of all). Takes ownership of `fields`. */
static void add_config(json_t *config, const char *request, json_t *fields)
{
	if (json_object_size(fields)) {
		json_object_set_new(fields, "apiVersion", json_string(DRA_TERMS_VERSION));
		json_object_set_new(fields, "kind", json_string(DRA_TERMS_KIND));
		json_t *one = json_pack("{s:{s:s, s:O}}", "opaque", "driver", DRA_DRIVER,
					"parameters", fields);
		if (request)
			json_object_set_new(one, "requests", json_pack("[s]", request));
		json_array_append_new(config, one);
	}
	json_decref(fields);
}

static json_t *make_config(const struct conversion *c, const json_t *requests)
{
	json_t *config = json_array(), *all = json_object();
	if (c->limits == 1)
		json_object_set_new(all, "coresLimit", number(c->limit_pct[0]));
	if (c->has_priority)
		json_object_set_new(all, "priority", json_integer(c->priority));
	if (c->live.on_full)
		json_object_set_new(all, "onFull", json_string(c->live.on_full));
	if (c->live.sharing)
		json_object_set_new(all, "sharing", json_string(c->live.sharing));
	if (c->live.group)
		json_object_set_new(all, "group", json_string(c->live.group));
	add_config(config, NULL, all);
	for (size_t i = 0; c->limits > 1 && i < c->limits; i++)
		add_config(config,
			   json_string_value(json_object_get(json_array_get(requests, i), "name")),
			   json_pack("{s:o}", "coresLimit", number(c->limit_pct[i])));
	return config;
}

static json_t *make_constraints(const struct conversion *c, const json_t *requests)
{
	cleanup_json json_t *names = json_array();
	json_t *constraints = json_array();
	for (size_t i = 0; i < json_array_size(requests); i++)
		json_array_append(names, json_object_get(json_array_get(requests, i), "name"));
	if (c->part->place.count < 2)
		return constraints;
	/* Without this constraint, a shareable device could be allocated to the claim twice. */
	json_array_append_new(constraints, json_pack("{s:O, s:s}", "requests", names,
						     "distinctAttribute", DRA_DRIVER "/uuid"));
	if (c->part->place.numa_bind)
		json_array_append_new(constraints,
				      json_pack("{s:O, s:s}", "requests", names, "matchAttribute",
						DRA_DRIVER "/numaNode"));
	return constraints;
}

static int check_values(const struct conversion *c)
{
	const struct kube_live *live = &c->live;
	const size_t counts[] = { live->memories, live->cores, live->limits };
	static const char *const names[] = { "memory", "cores", "cores-limit" };
	unsigned count = c->part->place.count;
	for (size_t i = 0; i < 3; i++)
		if (counts[i] > 1 && counts[i] != count)
			return error_set(c->w->err, EINVAL,
					 KUBE_LIVE_DOMAIN
					 "/%s: has %zu values for %u GPUs: must be one, "
					 "or one for each",
					 names[i], counts[i], count);
	if (count > GPUS_MAX)
		return error_set(c->w->err, EINVAL, "requests %u GPUs: must be at most %d", count,
				 GPUS_MAX);
	return 0;
}

/* Reads gpu-manager's limit, HAMi's priority, and allot's annotations, which override both. */
static int read_terms(struct conversion *c, const struct kube_pod *pod)
{
	const struct webhook_work *w = c->w;
	const struct vcuda_names names = { w->terms->vcuda_cores, w->terms->vcuda_memory };
	size_t container = c->part->container;
	const struct webhook_container *own = &w->container[container];
	struct vcuda_request ask;
	int r = live_read(pod, pod->container[container], &c->live, w->err);
	if (r < 0)
		return r;
	if (vcuda_request_read_amounts(pod, container, &names, &ask, NULL) >= 0) {
		c->limits = 1;
		c->limit_pct[0] = vcuda_limit_pct(&ask);
	}
	if (c->live.limits) {
		c->limits = c->live.limits;
		memcpy(c->limit_pct, c->live.limit_pct, sizeof(c->limit_pct));
	}
	r = priority_read(pod, container, w->terms->priority, &c->priority, w->err);
	c->has_priority = r >= 0 && own->has[RESOURCE_PRIORITY] && c->priority;
	if (c->live.has_priority) {
		c->has_priority = true;
		c->priority = c->live.priority;
	}
	return r < 0 ? r : check_values(c);
}

static int make_spec(const struct conversion *c, json_t **ret)
{
	cleanup_json json_t *selectors = json_array(), *requests = json_array();
	int r = add_selectors(c, selectors);
	for (unsigned i = 0; r >= 0 && i < c->part->place.count; i++) {
		json_t *request = NULL;
		r = make_request(c, i, selectors, &request);
		if (r >= 0)
			json_array_append_new(requests, request);
	}
	if (r < 0)
		return r;
	cleanup_json json_t *constraints = make_constraints(c, requests);
	cleanup_json json_t *config = make_config(c, requests);
	cleanup_json json_t *devices = json_pack("{s:O}", "requests", requests);
	if (json_array_size(constraints))
		json_object_set(devices, "constraints", constraints);
	if (json_array_size(config))
		json_object_set(devices, "config", config);
	*ret = json_pack("{s:O}", "devices", devices);
	return *ret ? 0 : error_set_errno(c->w->err, ENOMEM, "claim");
}

int webhook_make_spec(struct webhook_work *w, const struct kube_pod *pod,
		      const struct request *request, size_t part, json_t **ret)
{
	struct conversion c = { .w = w, .request = request, .part = &request->part[part] };
	int r = read_terms(&c, pod);
	return r < 0 ? r : make_spec(&c, ret);
}
