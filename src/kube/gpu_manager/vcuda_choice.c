#include "kube/gpu_manager/vcuda_choice.h"

#include <errno.h>
#include <string.h>

#include "base/parse.h"

struct candidate {
	struct vcuda_choice choice;
	int error; /* from reading the container's request; 0 if valid */
	struct error err;
};

static bool is_waiting(const struct vcuda_query *q, const struct kube_pod *pod)
{
	return !strcmp(pod_node(pod), q->node) && !pod->is_terminating && !pod->is_started &&
	       (pod->phase == POD_PENDING || pod->phase == POD_UNKNOWN);
}

/* From index `from` on. */
static bool find_requesting(const struct vcuda_query *q, const struct kube_pod *pod, size_t from,
			    struct candidate *ret)
{
	for (size_t i = from; i < pod->containers; i++) {
		struct candidate c = { .choice = { .pod = pod, .container = i } };
		c.error = vcuda_request_read(pod, i, q->names, &c.choice.request, &c.err);
		if (c.error == -ENODATA)
			continue;
		*ret = c;
		return true;
	}
	return false;
}

/* The kubelet handles containers in order, so its call is for the first container without a claim. */
static bool find_next(const struct vcuda_query *q, const struct kube_pod *pod, struct candidate *ret)
{
	size_t from = 0;
	while (find_requesting(q, pod, from, ret)) {
		if (!q->has_claim(q->data, pod, ret->choice.container))
			return true;
		from = ret->choice.container + 1;
	}
	return false;
}

static const char *container_of(const struct vcuda_choice *c)
{
	return c->pod->container[c->container];
}

/*
 * Compares the times at which gpu-admission chose GPUs or, if these are unknown or equal, the times of creation. strcmp() can
 * order the latter times, because their texts have a fixed length.
 */
static int compare_age(const struct kube_pod *a, const struct kube_pod *b)
{
	int64_t a_ns, b_ns;
	const char *a_time = pod_annotation(a, VCUDA_TIME), *b_time = pod_annotation(b, VCUDA_TIME);
	if (a_time && b_time && parse_int(a_time, 0, INT64_MAX, &a_ns, NULL) >= 0 &&
	    parse_int(b_time, 0, INT64_MAX, &b_ns, NULL) >= 0 && a_ns != b_ns)
		return a_ns < b_ns ? -1 : 1;
	int order = strcmp(a->created, b->created);
	if (!order)
		order = strcmp(a->pod_namespace, b->pod_namespace);
	return order ? order : strcmp(a->name, b->name);
}

/* The kubelet's coming call for memory tells two containers apart if their amounts differ. */
static bool memory_call_decides(const struct vcuda_query *q, const struct candidate *a,
				const struct candidate *b)
{
	unsigned one = a->choice.request.units, other = b->choice.request.units;
	return !q->has_open && one && other && one != other;
}

static int is_unclear(const struct vcuda_query *q, const struct candidate *a,
		      const struct candidate *b, struct error *err)
{
	return error_set(
		err, EBUSY,
		"pod %.63s/%.63s, container %.63s, and pod %.63s/%.63s, container %.63s, can't be "
		"told apart: both request %u %s: delete one pod, and create it anew when the other "
		"runs",
		a->choice.pod->pod_namespace, a->choice.pod->name, container_of(&a->choice),
		b->choice.pod->pod_namespace, b->choice.pod->name, container_of(&b->choice),
		q->count, q->names->cores);
}

static int check_pair(const struct vcuda_query *q, const struct candidate *a,
		      const struct candidate *b, struct error *err)
{
	bool is_same = !a->error && !b->error &&
		       vcuda_request_is_same(&a->choice.request, &b->choice.request);
	return is_same || (!a->error && !b->error && memory_call_decides(q, a, b))
		       ? 0
		       : is_unclear(q, a, b, err);
}

static int fail_no_match(const struct vcuda_query *q, const struct candidate *other,
			 struct error *err)
{
	if (!other->choice.pod)
		return error_set(
			err, EAGAIN,
			"the kubelet asks for GPUs, but no waiting container on node %s requests "
			"%u %s%s: if the pod does not start, create it anew",
			q->node, q->count, q->names->cores,
			q->has_open ? " (the previous call was for memory of the same container)"
				    : "");
	return error_set(
		err, EAGAIN,
		"the kubelet asks for %u %s, and its previous call asked for %u %s. No waiting "
		"container requests both amounts. For example, pod %.63s/%.63s, container %.63s, "
		"requests %u %s and %u %s. If a pod does not start, create it anew",
		q->count, q->names->cores, q->open_units, q->names->memory,
		other->choice.pod->pod_namespace, other->choice.pod->name,
		container_of(&other->choice), other->choice.request.cores, q->names->cores,
		other->choice.request.units, q->names->memory);
}

int vcuda_choose(const struct vcuda_query *q, struct vcuda_choice *ret, struct error *err)
{
	struct candidate best = { 0 }, other = { 0 };
	for (size_t i = 0; i < q->pod_count; i++) {
		struct candidate c;
		if (!is_waiting(q, q->pod[i]) || !find_next(q, q->pod[i], &c) ||
		    c.choice.request.cores != q->count)
			continue;
		if (q->has_open && c.choice.request.units != q->open_units) {
			other = c;
			continue;
		}
		int r = best.choice.pod ? check_pair(q, &best, &c, err) : 0;
		if (r < 0)
			return r;
		if (!best.choice.pod || compare_age(c.choice.pod, best.choice.pod) < 0)
			best = c;
	}
	if (!best.choice.pod)
		return fail_no_match(q, &other, err);
	*ret = best.choice;
	if (best.error) {
		*err = best.err;
		return error_add(err, best.error, "pod %.63s/%.63s, container %.63s",
				 best.choice.pod->pod_namespace, best.choice.pod->name,
				 container_of(&best.choice));
	}
	return 0;
}

int vcuda_check_memory(const struct vcuda_query *q, bool *ret_has_unclaimed, struct error *err)
{
	struct candidate c, broken = { 0 };
	bool is_found = false;
	*ret_has_unclaimed = false;
	for (size_t i = 0; i < q->pod_count; i++) {
		size_t from = 0;
		if (!is_waiting(q, q->pod[i]))
			continue;
		for (; find_requesting(q, q->pod[i], from, &c); from = c.choice.container + 1) {
			if (c.choice.request.units != q->count)
				continue;
			if (c.error) {
				broken = c;
				continue;
			}
			is_found = true;
			*ret_has_unclaimed |= !q->has_claim(q->data, c.choice.pod,
							    c.choice.container);
		}
	}
	if (is_found)
		return 0;
	if (!broken.error)
		return error_set(err, EAGAIN,
				 "the kubelet asks for GPU memory, but no pod that waits to start "
				 "on node %s requests %u %s: if the pod does not start, create it "
				 "anew",
				 q->node, q->count, q->names->memory);
	*err = broken.err;
	return error_add(err, broken.error, "pod %.63s/%.63s, container %.63s",
			 broken.choice.pod->pod_namespace, broken.choice.pod->name,
			 container_of(&broken.choice));
}
