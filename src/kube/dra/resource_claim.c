#include "kube/dra/resource_claim.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "kube/dra/dra_names.h"
#include "kube/util/sanitize.h"
#include "kube/util/quantity.h"

#define MOST_BYTES ((uint64_t)INT64_MAX)

/* NULL if the member is missing, is not a string, or contains NUL. */
static const char *text_of(const json_t *object, const char *name)
{
	const json_t *value = json_object_get(object, name);
	const char *text = json_string_value(value);
	return text && strlen(text) == json_string_length(value) ? text : NULL;
}

static bool is_ours(const json_t *object)
{
	const char *driver = text_of(object, "driver");
	return driver && !strcmp(driver, DRA_DRIVER);
}

/* Returns how much the allocation consumes, or NULL. The name may be written with or without the driver's domain. */
static const json_t *capacity(const json_t *result, const char *name)
{
	const json_t *consumed = json_object_get(result, "consumedCapacity");
	const json_t *value = json_object_get(consumed, name);
	if (value)
		return value;
	const char *full = strcmp(name, DRA_MEMORY) ? DRA_DRIVER "/" DRA_CORES
						    : DRA_DRIVER "/" DRA_MEMORY;
	return json_object_get(consumed, full);
}

static int read_capacity(const json_t *result, struct dra_result *ret, struct error *err)
{
	const json_t *memory = capacity(result, DRA_MEMORY), *cores = capacity(result, DRA_CORES);
	uint64_t cores_pct = 0;
	ret->is_whole = !memory;
	int r = memory ? quantity_read(memory, MOST_BYTES, &ret->memory_bytes, err) : 0;
	if (r >= 0 && memory && !ret->memory_bytes)
		r = error_set(err, EINVAL, "must be above 0");
	if (r < 0)
		return error_add(err, r, DRA_MEMORY);
	if (cores)
		r = quantity_read(cores, 100, &cores_pct, err);
	if (r < 0)
		return error_add(err, r, DRA_CORES);
	ret->cores_pct = (double)cores_pct;
	return 0;
}

/* An empty list names all requests. A name also stands for the request's alternatives: "gpu" names "gpu/small". */
static bool names_request(const json_t *requests, const char *request)
{
	size_t length = strcspn(request, "/");
	const json_t *one;
	size_t i;
	if (!json_array_size(requests))
		return true;
	json_array_foreach((json_t *)requests, i, one)
	{
		const char *name = json_string_value(one);
		if (name && (!strcmp(name, request) ||
			     (strlen(name) == length && !memcmp(name, request, length))))
			return true;
	}
	return false;
}

/* The class's parameters come first in `config`, so the claim's parameters replace them. */
static int read_terms(const json_t *config, struct dra_result *ret, struct error *err)
{
	json_t *one;
	size_t i;
	json_array_foreach((json_t *)config, i, one)
	{
		const json_t *opaque = json_object_get(one, "opaque");
		if (!is_ours(opaque) ||
		    !names_request(json_object_get(one, "requests"), ret->request))
			continue;
		int r = dra_terms_add(json_object_get(opaque, "parameters"), &ret->terms, err);
		if (r < 0)
			return r;
	}
	return 0;
}

static int read_result(const json_t *result, const json_t *config, struct dra_result *ret,
		       struct error *err)
{
	*ret = (struct dra_result){ .request = text_of(result, "request"),
				    .pool = text_of(result, "pool"),
				    .device = text_of(result, "device") };
	if (!ret->request || !ret->pool || !ret->device)
		return error_set(
			err, EINVAL,
			"status.allocation lists a device of gpu.allot.dev without a request, pool "
			"or device name: delete the claim and create it anew");
	if (json_is_true(json_object_get(result, "adminAccess")))
		return error_set(
			err, EINVAL,
			"request %.63s: adminAccess is not offered: remove it; metrics and allot "
			"ps show a GPU's use without a claim",
			ret->request);
	int r = read_capacity(result, ret, err);
	if (r >= 0)
		r = read_terms(config, ret, err);
	return r < 0 ? error_add(err, r, "request %.63s", ret->request) : 0;
}

int dra_claim_read(json_t *object, struct dra_claim *ret, struct error *err)
{
	const json_t *allocation = json_object_get(json_object_get(object, "status"), "allocation");
	const json_t *devices = json_object_get(allocation, "devices");
	const json_t *results = json_object_get(devices, "results"), *one;
	struct dra_claim claim = { .uid = text_of(json_object_get(object, "metadata"), "uid") };
	size_t i;
	int r = claim.uid ? 0 : error_set(err, EINVAL, "the claim has no uid");
	claim.result = calloc(json_array_size(results) + 1, sizeof(*claim.result));
	if (!claim.result)
		return error_set_errno(err, ENOMEM, "claim");
	json_array_foreach((json_t *)results, i, one)
	{
		if (r >= 0 && is_ours(one))
			r = read_result(one, json_object_get(devices, "config"),
					&claim.result[claim.count++], err);
	}
	if (r < 0) {
		free(claim.result);
		return error_sanitize(err, r);
	}
	claim.object = json_incref(object);
	*ret = claim;
	return 0;
}

void dra_claim_free(struct dra_claim *claim)
{
	free(claim->result);
	json_decref(claim->object);
	*claim = (struct dra_claim){ 0 };
}
