#include "scheduler/request/pod_request.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "kube/own/live.h"
#include "kube/util/sanitize.h"
#include "kube/util/quantity.h"
#include "scheduler/request/request_annotations.h"

#define MIB (UINT64_C(1) << 20)
#define CORES_WHOLE_PCT 100
#define NUMBER_MOST INT32_MAX /* upper limit of each value, as in HAMi */

const struct request_terms request_terms_default = {
	.count = "nvidia.com/gpu",
	.memory = "nvidia.com/gpumem",
	.memory_pct = "nvidia.com/gpumem-percentage",
	.cores = "nvidia.com/gpucores",
	.vcuda = { "tencent.com/vcuda-core", "tencent.com/vcuda-memory" },
	.default_count = 1,
	.node_policy = "binpack",
	.gpu_policy = "spread",
};

struct limit {
	bool is_there;
	uint64_t value;
};

static int read_limit(const json_t *limits, const char *name, uint64_t least, uint64_t most,
		      struct limit *ret, struct error *err)
{
	const json_t *value = json_object_get(limits, name);
	*ret = (struct limit){ 0 };
	if (!value)
		return 0;
	int r = quantity_read(value, most, &ret->value, err);
	if (r >= 0 && ret->value < least)
		r = error_set(err, EINVAL, "%" PRIu64 ": must be %" PRIu64 " or more", ret->value,
			      least);
	ret->is_there = r >= 0;
	return r < 0 ? error_add(err, r, "%s", name) : 0;
}

struct limits {
	struct limit count, memory_mib, memory_pct, cores_pct;
};

static void set_memory(const struct limits *l, const struct request_terms *terms,
		       struct place_request *place)
{
	uint64_t mib = l->memory_mib.is_there ? l->memory_mib.value : terms->default_memory_mib;
	place->memory = PLACE_MEMORY_ALL;
	if (!l->memory_mib.is_there && l->memory_pct.is_there) {
		place->memory = PLACE_MEMORY_PCT;
		place->memory_pct = (unsigned)l->memory_pct.value;
	} else if (mib) {
		place->memory = PLACE_MEMORY_BYTES;
		place->memory_bytes = mib * MIB;
	}
}

/* A container that names only a number of cards gets whole cards, unless `terms` has defaults for memory or compute. */
static void set_cores(const struct limits *l, const struct request_terms *terms,
		      struct place_request *place)
{
	bool is_part = l->memory_mib.is_there || l->memory_pct.is_there ||
		       terms->default_memory_mib || terms->default_cores_pct;
	uint64_t pct = l->cores_pct.is_there ? l->cores_pct.value
		       : is_part             ? terms->default_cores_pct
					     : CORES_WHOLE_PCT;
	place->cores_mpct = (uint32_t)(pct * MPCT);
}

/* Returns -ENODATA if the container requests nothing by HAMi's resources. */
static int read_hami(const json_t *limits, const struct request_terms *terms,
		     struct place_request *place, struct error *err)
{
	struct limits l;
	int r = read_limit(limits, terms->count, 0, NUMBER_MOST, &l.count, err);
	if (r >= 0)
		r = read_limit(limits, terms->memory, 1, NUMBER_MOST, &l.memory_mib, err);
	if (r >= 0)
		r = read_limit(limits, terms->memory_pct, 1, 100, &l.memory_pct, err);
	if (r >= 0)
		r = read_limit(limits, terms->cores, 0, CORES_WHOLE_PCT, &l.cores_pct, err);
	if (r < 0)
		return r;
	bool is_rest = l.memory_mib.is_there || l.memory_pct.is_there || l.cores_pct.is_there;
	if (l.count.is_there ? !l.count.value && !is_rest : !is_rest)
		return -ENODATA;
	if (l.count.is_there && !l.count.value)
		return error_set(err, EINVAL,
				 "%s: 0: must be 1 or more when memory or cores are requested",
				 terms->count);
	place->count = l.count.is_there ? (unsigned)l.count.value : terms->default_count;
	set_memory(&l, terms, place);
	set_cores(&l, terms, place);
	return 0;
}

static int read_vcuda(const struct kube_pod *pod, size_t container, const struct vcuda_names *names,
		      struct place_request *place, struct error *err)
{
	struct vcuda_request ask;
	int r = vcuda_request_read_amounts(pod, container, names, &ask, err);
	if (r < 0)
		return r;
	uint64_t bytes = vcuda_memory_bytes(&ask);
	place->count = ask.cards;
	place->memory = bytes ? PLACE_MEMORY_BYTES : PLACE_MEMORY_ALL;
	place->memory_bytes = bytes;
	place->cores_mpct = (uint32_t)(vcuda_cores_pct(&ask) * MPCT);
	return 0;
}

/* The node will raise the container's limits to the amounts in its annotations, so this raises the request too. */
static void raise_to_live(const struct kube_pod *pod, size_t container, struct place_request *place)
{
	const struct kube_live_floor floor = live_floor(pod, pod->container[container],
							place->count);
	uint64_t mib = floor.memory_mib > NUMBER_MOST ? NUMBER_MOST : floor.memory_mib;
	if (place->memory != PLACE_MEMORY_ALL && place->memory_bytes < mib * MIB)
		place->memory_bytes = mib * MIB;
	if (place->cores_mpct < floor.cores_pct * MPCT)
		place->cores_mpct = floor.cores_pct * MPCT;
}

static int add_part(const struct kube_pod *pod, size_t container, const struct request_terms *terms,
		    const struct place_request *common, struct request *request, struct error *err)
{
	const json_t *resources = json_object_get(pod_container(pod, container), "resources");
	struct place_request hami = *common, vcuda = *common;
	int r_hami = read_hami(json_object_get(resources, "limits"), terms, &hami, err);
	if (r_hami < 0 && r_hami != -ENODATA)
		return r_hami;
	int r_vcuda = read_vcuda(pod, container, &terms->vcuda, &vcuda, err);
	if (r_vcuda < 0 && r_vcuda != -ENODATA)
		return r_vcuda;
	if (!r_hami && !r_vcuda)
		return error_set(err, EINVAL, "requests both %s and %s: use only one of them",
				 terms->count, terms->vcuda.cores);
	if (!r_hami || !r_vcuda)
		raise_to_live(pod, container, r_hami ? &vcuda : &hami);
	/* Whole cards are not shared, and the kubelet has only as many gpu-manager units as can be guaranteed. */
	if (!r_vcuda || (!r_hami && hami.cores_mpct >= CORES_WHOLE_PCT * MPCT))
		request->is_opportunistic = false;
	if (!r_hami || !r_vcuda) {
		request->names |= r_hami ? REQUEST_NAMES_VCUDA : REQUEST_NAMES_HAMI;
		request->part[request->count++] = (struct request_part){
			.container = container,
			.is_init = container < pod->init_containers &&
				   !pod_is_sidecar(pod, container),
			.is_sidecar = pod_is_sidecar(pod, container),
			.place = r_hami ? vcuda : hami,
		};
	}
	return 0;
}

static int read_request(const struct kube_pod *pod, const struct request_terms *terms,
			struct request *request, struct error *err)
{
	struct place_request common;
	request->containers = pod->containers;
	request->part = calloc(pod->containers + 1, sizeof(*request->part));
	if (!request->part)
		return error_set_errno(err, ENOMEM, "request");
	/* Errors in annotations count only if the pod requests cards. */
	struct error wishes_err = { 0 };
	int r_wishes = request_read_annotations(pod, terms, request, &common, &wishes_err);
	if (r_wishes < 0)
		common = (struct place_request){ 0 };
	for (size_t i = 0; i < pod->containers; i++) {
		int r = add_part(pod, i, terms, &common, request, err);
		if (r < 0)
			return error_add(err, r, "container %.63s", pod->container[i]);
	}
	uint64_t shares = 0;
	for (size_t i = 0; i < request->count; i++)
		shares += request->part[i].place.count;
	if (request->count > 1 && shares > REQUEST_SHARES_MAX)
		return error_set(err, EINVAL,
				 "the pod's containers ask for %" PRIu64 " GPUs: must be at most %d",
				 shares, REQUEST_SHARES_MAX);
	if (r_wishes < 0 && request->count) {
		if (err)
			*err = wishes_err;
		return r_wishes;
	}
	return 0;
}

int request_read(const struct kube_pod *pod, const struct request_terms *terms, struct request *ret,
		 struct error *err)
{
	struct request request = { 0 };
	int r = read_request(pod, terms, &request, err);
	if (r < 0) {
		request_free(&request);
		return error_sanitize(err, r);
	}
	*ret = request;
	return 0;
}

void request_free(struct request *request)
{
	free(request->part);
	free(request->text);
	free(request->word);
	*request = (struct request){ 0 };
}
