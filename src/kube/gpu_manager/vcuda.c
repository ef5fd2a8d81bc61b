#include "kube/gpu_manager/vcuda.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/parse.h"
#include "kube/hami/shares.h"
#include "kube/util/sanitize.h"
#include "kube/util/quantity.h"

#define NAME_MAX_BYTES 320
#define MIB (UINT64_C(1) << 20)

/* Sets *ret to 0 if the limits do not name the resource. */
static int read_resource(const json_t *container, const char *name, unsigned most, unsigned *ret,
			 struct error *err)
{
	const json_t *limits = json_object_get(json_object_get(container, "resources"), "limits");
	const json_t *value = json_object_get(limits, name);
	uint64_t number = 0;
	*ret = 0;
	int r = value ? quantity_read(value, most, &number, err) : 0;
	if (r < 0)
		return error_add(err, r, "%s", name);
	*ret = (unsigned)number;
	return 0;
}

static int read_number(const struct kube_pod *pod, const char *name, unsigned most, unsigned *ret,
		       struct error *err)
{
	int64_t number;
	const char *text = pod_annotation(pod, name);
	if (!text)
		return 0;
	int r = parse_int(text, 1, most, &number, err);
	if (r < 0)
		return error_add(err, r, "%s", name);
	*ret = (unsigned)number;
	return 0;
}

/* As in gpu-manager, a limit above a whole GPU counts as a whole GPU. */
static int read_limit(const struct kube_pod *pod, struct vcuda_request *request, struct error *err)
{
	int r = read_number(pod, VCUDA_LIMIT, INT32_MAX, &request->limit_pct, err);
	if (request->limit_pct > VCUDA_CORES_WHOLE)
		request->limit_pct = VCUDA_CORES_WHOLE;
	return r;
}

/* The container's own annotation takes precedence over the pod's. */
static int read_cards(const struct kube_pod *pod, const char *container,
		      struct vcuda_request *request, struct error *err)
{
	char own[NAME_MAX_BYTES];
	snprintf(own, sizeof(own), "%s." KUBE_LIVE_DOMAIN "/" VCUDA_CARDS, container);
	return read_number(pod, pod_annotation(pod, own) ? own : KUBE_LIVE_DOMAIN "/" VCUDA_CARDS,
			   VCUDA_MAX_CARDS, &request->cards, err);
}

static int parse_minors(const char *text, struct vcuda_request *request, struct error *err)
{
	for (const char *at = text;; at++) {
		char *end;
		unsigned long minor = strtoul(at, &end, 10);
		if (end == at || end - at > 4 || *at < '0' || *at > '9' || (*end && *end != ','))
			return error_set(
				err, EINVAL,
				"'%.60s': must be GPU numbers separated by commas, such as 0,1",
				text);
		for (unsigned i = 0; i < request->chosen; i++)
			if (request->minor[i] == minor)
				return error_set(err, EINVAL, "'%.60s': names GPU %lu twice", text,
						 minor);
		if (request->chosen == VCUDA_MAX_CARDS)
			return error_set(err, EINVAL, "'%.60s': must name at most %d GPUs", text,
					 VCUDA_MAX_CARDS);
		request->minor[request->chosen++] = (unsigned)minor;
		at = end;
		if (!*end)
			return 0;
	}
}

/* The scheduler's choice is valid until the pod is marked as assigned; then only the number of GPUs counts. */
static int read_choice(const struct kube_pod *pod, size_t container, struct vcuda_request *request,
		       struct error *err)
{
	const char *assigned = pod_annotation(pod, VCUDA_ASSIGNED);
	const char *node = pod_annotation(pod, VCUDA_NODE);
	char name[sizeof(VCUDA_INDEX) + 24];
	bool is_open = assigned && !strcmp(assigned, "false");
	if (container < pod->init_containers || !pod_annotation(pod, VCUDA_TIME) || !assigned)
		return 0;
	if (is_open && node && *pod->node && strcmp(node, pod->node) != 0)
		return error_set(err, EINVAL,
				 "annotation " VCUDA_NODE " is %.100s, but the pod is on node "
				 "%.100s: create the pod anew",
				 node, pod->node);
	snprintf(name, sizeof(name), VCUDA_INDEX "%zu", container - pod->init_containers);
	const char *text = pod_annotation(pod, name);
	if (!text)
		return is_open ? error_set(err, EINVAL,
					   "annotation %s is missing, although " VCUDA_TIME
					   " is set: the scheduler must write both",
					   name)
			       : 0;
	int r = parse_minors(text, request, err);
	if (r < 0)
		return error_add(err, r, "%s", name);
	if (!request->cards)
		request->cards = request->chosen;
	if (!is_open)
		request->chosen = 0;
	return 0;
}

static int take_shares(const struct kube_share *share, size_t count, struct vcuda_request *request,
		       struct error *err)
{
	if (request->chosen)
		return error_set(err, EINVAL,
				 "two schedulers chose GPUs for this pod, and one of the schedulers "
				 "wrote annotations " VCUDA_INDEX
				 "*: let only one scheduler serve this pod");
	if (count > VCUDA_MAX_CARDS)
		return error_set(err, EINVAL, "%zu GPU shares: must be at most %d", count,
				 VCUDA_MAX_CARDS);
	for (size_t i = 0; i < count; i++) {
		for (size_t k = 0; k < i; k++)
			if (!strcmp(share[i].card, share[k].card))
				return error_set(err, EINVAL, "names %.64s twice", share[i].card);
		strcpy(request->uuid[i], share[i].card);
	}
	request->chosen = (unsigned)count;
	request->is_by_shares = true;
	return 0;
}

/* Each share must equal what the container requests of one GPU. */
static int compare_shares(const struct kube_share *share, size_t count,
			  const struct vcuda_request *request, const struct vcuda_names *names,
			  struct error *err)
{
	uint64_t mib = vcuda_memory_bytes(request) / MIB;
	for (size_t i = 0; i < count; i++)
		if (share[i].cores_pct != (unsigned)vcuda_cores_pct(request) ||
		    (mib && share[i].memory_mib != mib))
			return error_set(
				err, EINVAL,
				"the scheduler assigned %llu MiB and %u cores of %.64s, but the "
				"pod asks for %u %s and %u %s of %u GPU%s: create the pod anew",
				(unsigned long long)share[i].memory_mib, share[i].cores_pct,
				share[i].card, request->cores, names->cores, request->units,
				names->memory, request->cards, request->cards > 1 ? "s" : "");
	return 0;
}

/* Reads the container's shares that are not allocated yet, and compares them with its request. */
static int read_open_shares(const struct kube_pod *pod, size_t container,
			    const struct vcuda_names *names, struct vcuda_request *request,
			    struct error *err)
{
	struct kube_shares shares;
	size_t count = 0;
	if (pod->bind_phase != BIND_ALLOCATING || !pod->to_allocate)
		return 0;
	int r = shares_parse_of(pod->to_allocate, pod->init_containers, pod->containers, &shares,
				err);
	if (r < 0)
		return error_add(err, r, KUBE_POD_TO_ALLOCATE);
	const struct kube_share *share = shares_of(&shares, container, &count);
	if (count && !request->cards)
		request->cards = (unsigned)count;
	if (count)
		r = take_shares(share, count, request, err);
	if (r >= 0 && count)
		r = compare_shares(share, count, request, names, err);
	shares_free(&shares);
	return r < 0 ? error_add(err, r, KUBE_POD_TO_ALLOCATE) : 0;
}

static void count_shares(const struct kube_pod *pod, size_t container, struct vcuda_request *request)
{
	struct kube_shares shares;
	size_t count = 0;
	if (request->cards || !pod->allocated ||
	    shares_parse_of(pod->allocated, pod->init_containers, pod->containers, &shares, NULL) < 0)
		return;
	shares_of(&shares, container, &count);
	shares_free(&shares);
	if (count <= VCUDA_MAX_CARDS)
		request->cards = (unsigned)count;
}

static unsigned cards_of(const struct vcuda_request *request)
{
	return request->cores > VCUDA_CORES_WHOLE && request->cores % VCUDA_CORES_WHOLE == 0
		       ? request->cores / VCUDA_CORES_WHOLE
		       : 1;
}

static int check(struct vcuda_request *request, const struct vcuda_names *names, struct error *err)
{
	if (!request->cores)
		return error_set(err, EINVAL, "%s is requested without %s: request both",
				 names->memory, names->cores);
	if (request->chosen && request->cards && request->chosen != request->cards)
		return error_set(err, EINVAL,
				 "the scheduler has chosen %u GPUs, but annotation " KUBE_LIVE_DOMAIN
				 "/" VCUDA_CARDS " asks for %u: create the pod anew",
				 request->chosen, request->cards);
	if (!request->cards)
		request->cards = cards_of(request);
	if (request->cards > VCUDA_MAX_CARDS)
		return error_set(err, EINVAL,
				 "%s: %u: must ask for at most %d GPUs (100 for each GPU)",
				 names->cores, request->cores, VCUDA_MAX_CARDS);
	if (request->cores > request->cards * VCUDA_CORES_WHOLE)
		return error_set(
			err, EINVAL,
			"%s: %u for %u GPU%s: must be at most 100 for each GPU; annotation " KUBE_LIVE_DOMAIN
			"/" VCUDA_CARDS " sets the number of GPUs; without it, a "
			"multiple of 100 requests that many whole GPUs",
			names->cores, request->cores, request->cards, request->cards > 1 ? "s" : "");
	if (!request->units && request->cores < request->cards * VCUDA_CORES_WHOLE)
		return error_set(err, EINVAL, "%s: %u: a part of a GPU needs %s too", names->cores,
				 request->cores, names->memory);
	return 0;
}

/* Reads the container's own request, without any scheduler's choice. check() tests the amounts later. */
static int read_amounts(const struct kube_pod *pod, size_t container,
			const struct vcuda_names *names, struct vcuda_request *request,
			struct error *err)
{
	const json_t *object = pod_container(pod, container);
	int r = read_resource(object, names->cores, VCUDA_MAX_CARDS * VCUDA_CORES_WHOLE,
			      &request->cores, err);
	int r_units = read_resource(object, names->memory, VCUDA_MAX_UNITS, &request->units,
				    r < 0 ? NULL : err);
	r = r < 0 ? r : r_units;
	if (r >= 0 && !request->cores && !request->units)
		return -ENODATA;
	if (r >= 0)
		r = read_limit(pod, request, err);
	if (r >= 0)
		r = read_cards(pod, pod->container[container], request, err);
	return r;
}

int vcuda_request_read_amounts(const struct kube_pod *pod, size_t container,
			       const struct vcuda_names *names, struct vcuda_request *ret,
			       struct error *err)
{
	struct vcuda_request request = { 0 };
	int r = read_amounts(pod, container, names, &request, err);
	if (r == -ENODATA)
		return r;
	if (r >= 0)
		r = check(&request, names, err);
	*ret = request;
	return r < 0 ? error_sanitize(err, r) : 0;
}

int vcuda_request_read(const struct kube_pod *pod, size_t container,
		       const struct vcuda_names *names, struct vcuda_request *ret, struct error *err)
{
	struct vcuda_request request = { 0 };
	int r = read_amounts(pod, container, names, &request, err);
	if (r == -ENODATA)
		return r;
	if (r >= 0)
		r = read_choice(pod, container, &request, err);
	if (r >= 0)
		r = read_open_shares(pod, container, names, &request, err);
	if (r >= 0)
		count_shares(pod, container, &request);
	if (r >= 0)
		r = check(&request, names, err);
	*ret = request;
	return r < 0 ? error_sanitize(err, r) : 0;
}

bool vcuda_request_is_same(const struct vcuda_request *a, const struct vcuda_request *b)
{
	return a->cores == b->cores && a->units == b->units && a->cards == b->cards &&
	       a->limit_pct == b->limit_pct;
}

double vcuda_cores_pct(const struct vcuda_request *request)
{
	return (double)request->cores / request->cards;
}

double vcuda_limit_pct(const struct vcuda_request *request)
{
	double cores_pct = vcuda_cores_pct(request);
	return request->limit_pct > cores_pct ? request->limit_pct : cores_pct;
}

uint64_t vcuda_memory_bytes(const struct vcuda_request *request)
{
	return request->units * VCUDA_UNIT_BYTES / request->cards / MIB * MIB;
}
