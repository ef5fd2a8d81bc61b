#include "daemon/kubelet/dra/dra_request.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/parse.h"
#include "daemon/kubelet/devices/allocate.h"
#include "daemon/state/node/node.h"
#include "kube/dra/dra_names.h"
#include "kube/dra/slice.h"

static int add_limit(const struct dra_result *result, struct promise_request *terms,
		     struct error *err)
{
	if (!result->terms.has_cores_limit)
		return 0;
	if (result->terms.cores_limit_pct < result->cores_pct)
		return error_set(
			err, EINVAL,
			"coresLimit %g is less than the %g %% of cores that are requested: must be "
			"at least that",
			result->terms.cores_limit_pct, result->cores_pct);
	if (result->terms.cores_limit_pct > terms->limit_pct)
		terms->limit_pct = result->terms.cores_limit_pct;
	return 0;
}

static int add_device(struct node *node, const char *node_name, const struct dra_result *result,
		      struct claim_request *request, struct error *err)
{
	char pool[DRA_POOL_MAX];
	dra_pool_name(node_name, result->device, pool);
	if (strcmp(result->pool, pool) != 0)
		return error_set(
			err, ENODEV,
			"GPU %.63s belongs to the pool '%.160s', which is not a pool of node %s: "
			"delete the ResourceClaim and its pod, so that a new claim gets another GPU",
			result->device, result->pool, node_name);
	/* A device's name is the GPU's UUID in lower case. */
	struct card *card = node_find_card_text(node, result->device);
	if (!card)
		return error_set(err, ENODEV,
				 "GPU %.63s is not on this node any more: delete the ResourceClaim "
				 "and its pod, so that a new claim gets another GPU",
				 result->device);
	struct claim_device_request *d = allocate_add_card(request, card);
	if (!d)
		return error_set(err, EINVAL,
				 "the claim has too many GPUs: a claim may have at most %d",
				 REGION_MAX_DEVICES);
	d->terms.memory_bytes += result->is_whole ? card->info.memory_bytes : result->memory_bytes;
	d->terms.cores_pct += result->cores_pct;
	return add_limit(result, &d->terms, err);
}

static int check_instances(const struct claim_request *request, struct error *err)
{
	for (unsigned i = 0; i < request->device_count; i++)
		if (request->device_count > 1 && request->device[i].card->info.is_instance)
			return error_set(
				err, EINVAL,
				"GPU %u is a MIG instance: CUDA shows no other device to a process that "
				"uses a MIG instance: ask for one device in a claim",
				request->device[i].card->index);
	return 0;
}

/*
 * A missing limit becomes the guarantee if the setting kube_slice_limit is hard, else 100 %. Call after the amounts of all
 * requests for one GPU were added up.
 */
static int set_limits(const struct node *node, struct claim_request *request, struct error *err)
{
	for (unsigned i = 0; i < request->device_count; i++) {
		struct promise_request *terms = &request->device[i].terms;
		terms->has_cores = terms->cores_pct > 0;
		if (terms->limit_pct && terms->limit_pct < terms->cores_pct)
			return error_set(
				err, EINVAL,
				"coresLimit %g is less than the %g %% of cores that the claim asks "
				"for on GPU %u: raise coresLimit, or "
				"let the claim's requests get different GPUs (distinctAttribute)",
				terms->limit_pct, terms->cores_pct, request->device[i].card->index);
		if (!terms->limit_pct)
			terms->limit_pct = terms->has_cores && node->config.is_kube_slice_hard
						   ? terms->cores_pct
						   : 100;
	}
	return 0;
}

static int check_agree(const struct dra_result *a, const struct dra_result *b, struct error *err)
{
	const struct dra_terms *x = &a->terms, *y = &b->terms;
	const char *what = x->has_priority != y->has_priority || x->priority != y->priority
				   ? "priority"
			   : strcmp(x->on_full, y->on_full) ? "onFull"
			   : strcmp(x->sharing, y->sharing) ? "sharing"
			   : strcmp(x->group, y->group)     ? "group"
							    : NULL;
	if (!what)
		return 0;
	return error_set(err, EINVAL,
			 "%s is not the same for the requests %.63s and %.63s: a claim is one tenant, "
			 "so set the same value for both requests in the claim's config",
			 what, a->request, b->request);
}

static int set_terms(const struct dra_terms *terms, struct claim_request *request, struct error *err)
{
	bool is_space = false;
	request->priority = terms->priority;
	if (*terms->on_full && on_full_parse(terms->on_full, &request->on_full) < 0)
		return error_set(err, EINVAL, "onFull: '%s': must be fail, wait or swap",
				 terms->on_full);
	request->sharing.has_way = *terms->sharing &&
				   parse_sharing(terms->sharing, &is_space, err) >= 0;
	request->sharing.way = is_space ? SHARING_SPACE : SHARING_TIME;
	snprintf(request->sharing.group, sizeof(request->sharing.group), "%s", terms->group);
	return 0;
}

int dra_request_make(struct node *node, const char *node_name, const struct dra_claim *claim,
		     const char *key, const char *name, const char *in_namespace,
		     struct claim_request *ret, struct error *err)
{
	*ret = (struct claim_request){
		.key = key, .tenant = name, .namespace_name = in_namespace, .while_wanted = true
	};
	if (!claim->count)
		return error_set(err, EINVAL,
				 "no device of " DRA_DRIVER " is allocated to the claim");
	for (size_t i = 0; i < claim->count; i++) {
		const struct dra_result *result = &claim->result[i];
		int r = check_agree(&claim->result[0], result, err);
		if (r >= 0)
			r = add_device(node, node_name, result, ret, err);
		if (r < 0)
			return error_add(err, r, "request %.63s", result->request);
	}
	int r = check_instances(ret, err);
	if (r >= 0)
		r = set_limits(node, ret, err);
	return r < 0 ? r : set_terms(&claim->result[0].terms, ret, err);
}
