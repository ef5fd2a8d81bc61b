/* For the verb bind: decides which GPUs (cards) the pod gets. */
#include <errno.h>
#include <string.h>

#include "base/text.h"
#include "scheduler/extender/extender.h"
#include "scheduler/extender/extender_gang.h"
#include "scheduler/model/model_gang.h"

#define REASON_MAX 320

struct bind_args {
	const char *pod_namespace, *pod, *uid, *node;
};

static int read_args(const json_t *args, struct bind_args *ret, struct error *err)
{
	static const char *const keys[] = { "PodNamespace", "PodName", "PodUID", "Node" };
	const char *text[4];
	for (size_t i = 0; i < 4; i++) {
		text[i] = json_string_value(json_object_get(args, keys[i]));
		if (!text[i] || !*text[i])
			return error_set(
				err, EINVAL,
				"bind request: %s must be a string that is not empty: is kube-scheduler the caller?",
				keys[i]);
	}
	*ret = (struct bind_args){ text[0], text[1], text[2], text[3] };
	return 0;
}

static int check_pod(const struct bind_args *a, const struct model_pod *pod, struct error *err)
{
	if (!pod)
		return error_set(err, ENOENT, "not found: it requests no GPU, or no longer exists");
	if (strcmp(pod->pod_namespace, a->pod_namespace) != 0 ||
	    strcmp(model_pod_name(pod), a->pod) != 0)
		return error_set(
			err, ESTALE,
			"kube-scheduler sent uid %.64s for this pod, but that uid belongs to pod %.63s/%.128s",
			a->uid, pod->pod_namespace, model_pod_name(pod));
	if (pod->is_bound)
		return error_set(err, ESTALE, "is already bound");
	if (pod->is_terminating)
		return error_set(err, ESTALE, "is being deleted");
	if (!pod->request)
		return error_set(err, EINVAL, "%s",
				 pod->request_error ? pod->request_error : "requests no GPU");
	return 0;
}

static int check_node(const struct bind_args *a, const struct model_node *node, struct error *err)
{
	if (!node)
		return error_set(err, ENOENT, "node %.128s: not found", a->node);
	if (node->cards_error)
		return error_set(
			err, ENOSPC,
			"node %.128s: gets no pods with GPUs until its list of GPUs is corrected: %s",
			a->node, node->cards_error);
	if (!node->inventory.count)
		return error_set(err, ENOSPC, "node %.128s: reports no GPUs", a->node);
	return 0;
}

/* Whether the policy ranks cards by the room that they keep for other requests. */
static bool uses_histogram(const struct request *request)
{
	const struct place_request *place = &request->part[0].place;
	for (unsigned i = 0; i < place->evaluator_count; i++)
		if (!strcmp(place->evaluator[i], "room"))
			return true;
	return false;
}

static int choose(struct model *m, struct model_node *node, struct model_pod *pod,
		  struct kube_shares *ret, struct error *err)
{
	struct fit_reasons reasons;
	char text[REASON_MAX];
	/* The pod's present shares do not count, because new ones replace them. */
	model_suspend_charge(pod);
	fit_begin(&m->fit, pod->request);
	model_apply_quota(m, pod->pod_namespace);
	if (uses_histogram(pod->request))
		fit_set_histogram(&m->fit, model_histogram(m));
	int r = fit_choose(&m->fit, &node->inventory, ret, &reasons);
	model_restore_charge(pod);
	if (r == -ENOSPC) {
		fit_reasons_text(&node->inventory, &reasons, text, sizeof(text));
		return error_set(err, ENOSPC, "node %.128s: %s", node->name, text);
	}
	return r < 0 ? error_set_errno(err, -r, "node %.128s", node->name) : 0;
}

static int fill(const struct bind_args *a, const struct kube_shares *shares, struct decision *ret,
		struct error *err)
{
	const struct decision d = { .pod_namespace = (char *)a->pod_namespace,
				    .pod = (char *)a->pod,
				    .uid = (char *)a->uid,
				    .node = (char *)a->node,
				    .shares = *shares };
	int r = decision_copy(&d, ret);
	return r < 0 ? error_set_errno(err, -r, "decision") : 0;
}

static int decide(struct model *m, const struct bind_args *a, struct decision *ret,
		  struct error *err)
{
	struct model_pod *pod = model_find_pod(m, a->uid);
	struct model_node *node = model_find_node(m, a->node);
	struct kube_shares shares = { 0 };
	struct decision d = { 0 };
	int r = check_pod(a, pod, err);
	if (r < 0)
		return r;
	if (!pod->request->count) {
		shares.containers = pod->request->containers;
		return fill(a, &shares, ret, err);
	}
	r = extender_gang_check(m, pod, a->node, err);
	if (r >= 0)
		r = check_node(a, node, err);
	if (r >= 0)
		r = choose(m, node, pod, &shares, err);
	if (r < 0)
		return r;
	r = fill(a, &shares, &d, err);
	if (r >= 0)
		r = model_reserve(m, pod, node, &d.shares, err);
	if (r >= 0 && pod->member)
		model_gang_reserved(m, pod->member);
	shares_free(&shares);
	if (r < 0) {
		decision_free(&d);
		return r;
	}
	*ret = d;
	return 0;
}

int extender_decide(struct model *m, const json_t *args, uint64_t now_ns, struct decision *ret,
		    struct error *err)
{
	struct bind_args a;
	int r = read_args(args, &a, err);
	if (r < 0)
		return r;
	model_advance(m, now_ns);
	r = model_check_ready(m, err);
	if (r < 0)
		return r;
	r = decide(m, &a, ret, err);
	if (r < 0) {
		error_add(err, r, "pod %.63s/%.128s", a.pod_namespace, a.pod);
		text_clean(err->text); /* it contains names from the caller */
	}
	return r;
}
