#include "daemon/kubelet/plugin/vcuda_request.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "daemon/kubelet/devices/pod_key.h"
#include "daemon/state/node/node.h"
#include "daemon/kubelet/plugin/annotated_request.h"

#define REASONS_MAX 240
#define CHOSEN_MAX 128
#define SAME_PCT 0.005 /* percentages have two decimals */

static struct place_request place_request_of(const struct vcuda_request *ask)
{
	uint64_t bytes = vcuda_memory_bytes(ask);
	return (struct place_request){ .count = ask->cards,
				       .memory = bytes ? PLACE_MEMORY_BYTES : PLACE_MEMORY_ALL,
				       .memory_bytes = bytes,
				       .cores_mpct = (uint32_t)(vcuda_cores_pct(ask) * 1000) };
}

static int add_card(struct card *card, const struct vcuda_request *ask, uint64_t memory_bytes,
		    struct claim_request *request, struct error *err)
{
	if (request->device_count == REGION_MAX_DEVICES)
		return error_set(err, EINVAL,
				 "the container asks for too many GPUs: it may have at most %d",
				 REGION_MAX_DEVICES);
	request->device[request->device_count++] =
		(struct claim_device_request){ .card = card,
					       .terms = { .has_memory = true,
							  .memory_bytes = memory_bytes,
							  .has_cores = true,
							  .cores_pct = vcuda_cores_pct(ask),
							  .has_limit = true,
							  .limit_pct = vcuda_limit_pct(ask) } };
	return 0;
}

/* By UUID, or by the device file's number; if that is unknown, the card's index counts. Negative if there is none. */
static int find_chosen(const struct node *node, const struct vcuda_request *ask, unsigned which)
{
	for (unsigned i = 0; i < node->card_count; i++) {
		const struct gpu_info *info = &node->card[i].info;
		if (ask->is_by_shares ? !strcmp(info->uuid_text, ask->uuid[which])
				      : (info->minor_known ? info->minor : i) == ask->minor[which])
			return (int)i;
	}
	return -1;
}

static void name_chosen(const struct vcuda_request *ask, unsigned which, char name[CHOSEN_MAX])
{
	if (ask->is_by_shares)
		snprintf(name, CHOSEN_MAX, KUBE_POD_TO_ALLOCATE ": %.64s", ask->uuid[which]);
	else
		snprintf(name, CHOSEN_MAX, VCUDA_INDEX "*: GPU %u", ask->minor[which]);
}

static int take_chosen(struct node *node, const struct place_node *model,
		       const struct vcuda_request *ask, struct claim_request *request,
		       struct error *err)
{
	const struct place_request wanted = place_request_of(ask);
	int r = 0;
	for (unsigned i = 0; r >= 0 && i < ask->chosen; i++) {
		char name[CHOSEN_MAX];
		int card = find_chosen(node, ask, i);
		name_chosen(ask, i, name);
		if (card < 0)
			return error_set(err, ENODEV, "%s: is not a GPU of this node", name);
		enum place_reason reason = place_check_card(&model->card[card], &wanted);
		if (reason != PLACE_FITS)
			return error_set(
				err, ENOSPC,
				"%s: the scheduler chose this GPU, but the request does not fit on it: %s: "
				"delete the pod, so that the scheduler chooses again",
				name, place_reason_name(reason));
		r = add_card(&node->card[card], ask,
			     place_need(&model->card[card], &wanted).memory_bytes, request, err);
	}
	return r;
}

static int take_best(struct node *node, const struct place_node *model,
		     const struct vcuda_request *ask, struct claim_request *request,
		     struct error *err)
{
	const struct place_request wanted = place_request_of(ask);
	struct place_choice choice;
	char reasons[REASONS_MAX];
	int r = place_choose(model, &wanted, &choice);
	if (r == -ENOSPC) {
		place_reasons_text(choice.reason, node->card_count, &wanted, reasons,
				   sizeof(reasons));
		return error_set(err, ENOSPC, "%u GPU%s with enough room %s needed: %s", ask->cards,
				 ask->cards > 1 ? "s" : "", ask->cards > 1 ? "are" : "is", reasons);
	}
	if (r < 0)
		return error_set_errno(err, -r, "choice of GPUs");
	for (unsigned i = 0; r >= 0 && i < choice.count; i++)
		r = add_card(&node->card[choice.card[i]], ask, choice.need[i].memory_bytes, request,
			     err);
	return r;
}

static bool is_same_pct(double a, double b)
{
	return a - b < SAME_PCT && b - a < SAME_PCT;
}

/*
 * A request without an amount asks for the whole card. Then a quota about equal to the card's memory is enough, because the
 * driver may have reported a slightly different total when the claim was made. `card` is NULL if the claim's card is missing.
 */
static bool is_memory_met(uint64_t asked_bytes, uint64_t quota_bytes, const struct card *card)
{
	if (asked_bytes)
		return quota_bytes == asked_bytes;
	return !card || quota_bytes + VCUDA_UNIT_BYTES > card->info.memory_bytes;
}

bool vcuda_request_matches(const struct claim *claim, const struct vcuda_request *ask)
{
	uint64_t bytes = vcuda_memory_bytes(ask);
	const struct tenant_terms *terms = claim_terms(claim);
	for (unsigned i = 0; i < terms->device_count; i++) {
		const struct promise *p = claim_original_promise(claim, i);
		if (!is_memory_met(bytes, p->quota_bytes, terms->device[i].card) ||
		    !is_same_pct(p->cores_pct, vcuda_cores_pct(ask)) ||
		    !is_same_pct(p->limit_pct, vcuda_limit_pct(ask)))
			return false;
	}
	return terms->device_count == ask->cards;
}

void vcuda_request_name(const struct kube_pod *pod, size_t container, char name[REGION_NAME_MAX])
{
	snprintf(name, REGION_NAME_MAX, "%s.%s.%s", pod->pod_namespace, pod->name,
		 pod->container[container]);
}

int vcuda_request_make(struct node *node, const struct place_node *model,
		       const struct vcuda_choice *choice, const char *device,
		       char key[TENANT_CLAIM_MAX], char name[REGION_NAME_MAX],
		       struct claim_request *ret, struct error *err)
{
	const struct vcuda_request *ask = &choice->request;
	*ret = (struct claim_request){ .key = key, .tenant = name, .while_wanted = true };
	int r = pod_key_make(choice->pod, choice->container, device, key, err);
	if (r < 0)
		return r;
	vcuda_request_name(choice->pod, choice->container, name);
	r = annotated_request_sharing(choice->pod, choice->pod->container[choice->container], ret,
				      err);
	if (r < 0)
		return r;
	if (!node->config.is_kube_share && ask->cores != ask->cards * VCUDA_CORES_WHOLE)
		return error_set(
			err, EINVAL,
			"the container asks for %u hundredths of a GPU on %u GPU%s: must be 100 for "
			"each GPU while kube_share is off",
			ask->cores, ask->cards, ask->cards > 1 ? "s" : "");
	return ask->chosen ? take_chosen(node, model, ask, ret, err)
			   : take_best(node, model, ask, ret, err);
}
