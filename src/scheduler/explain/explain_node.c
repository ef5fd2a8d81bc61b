#include "scheduler/explain/explain_node.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/text.h"
#include "policy/placement/score.h"
#include "scheduler/extender/extender_gang.h"
#include "scheduler/model/model_gang.h"
#include "scheduler/model/model_inside.h"
#include "scheduler/opportunistic/opportunistic.h"

#define REASON_MAX 320
/* HAMi's words when a node has fewer cards than a container wants (place_reasons_text()). */
#define TOO_FEW_CARDS "NodeInsufficientDevice"

static bool is_opportunistic(const struct model *m)
{
	return m->fit.request->is_opportunistic;
}

/* NULL if card i's measured use is known. While it is unknown, guaranteed compute counts as used for an opportunistic pod. */
static const char *why_unknown(const struct model *m, const struct model_node *node, unsigned i)
{
	const struct use *u = &node->use;
	if (use_of(u, i, m->now_ns))
		return NULL;
	if (!u->digest)
		return "the node does not report how busy its GPUs are (annotation " KUBE_NODE_USE
		       ")";
	if (!u->is_live)
		return "the node's report of GPU use has not changed since the scheduler first read it, so it may be stale";
	if (m->now_ns - u->changed_ns > USE_FRESH_NS)
		return "the node has not reported the GPU's use for 180 s: is its allotd running?";
	return "the node does not report the use of this GPU";
}

static uint64_t cooldown_for_ns(const struct model *m, const struct model_node *node, unsigned i)
{
	return opportunistic_cooldown_for_ns(use_of(&node->use, i, m->now_ns), m->now_ns);
}

static json_int_t seconds_of(uint64_t ns)
{
	return (json_int_t)((ns + NSEC_PER_SEC - 1) / NSEC_PER_SEC);
}

static bool explain_is_cooling(const struct model *m, const struct model_node *node, unsigned i)
{
	return is_opportunistic(m) && cooldown_for_ns(m, node, i);
}

/* Shows how much compute of card i an opportunistic pod may not use, and the figures from which that follows. */
static json_t *show_use(const struct model *m, const struct model_node *node, unsigned i)
{
	const struct opportunistic_card card = fit_opportunistic_card(&m->fit, &node->inventory, i);
	uint64_t cooldown_ns = cooldown_for_ns(m, node, i);
	json_t *use = json_pack("{s:I,s:I,s:i,s:i,s:i,s:I}", "promised_pct",
				(json_int_t)card.guaranteed_pct, "lent_pct",
				(json_int_t)card.borrowed_pct, "measured_pct",
				(int)card.use->held_pct, "peak_pct", (int)card.use->peak_pct,
				"now_pct", (int)card.use->now_pct, "taken_pct",
				(json_int_t)opportunistic_taken_pct(&card, m->now_ns));
	if (cooldown_ns)
		json_object_set_new(use, "shut_for_s", json_integer(seconds_of(cooldown_ns)));
	return use;
}

static void explain_add_card_use(json_t *to, const struct model *m, const struct model_node *node,
				 unsigned i)
{
	const char *why = why_unknown(m, node, i);
	if (!is_opportunistic(m))
		return;
	if (why)
		json_object_set_new(to, "use_unknown", json_string(why));
	else
		json_object_set_new(to, "use", show_use(m, node, i));
}

/* For an opportunistic pod: adds how many cards have unknown use, and how many take no such pods for a while. */
static void explain_add_use(json_t *to, const struct model *m, const struct model_node *node)
{
	unsigned unknown = 0, cooldown = 0;
	uint64_t first_ns = 0;
	const char *why = NULL;
	if (!is_opportunistic(m))
		return;
	for (unsigned i = 0; i < node->inventory.count; i++) {
		const char *of_this = why_unknown(m, node, i);
		uint64_t cooldown_ns = cooldown_for_ns(m, node, i);
		unknown += of_this != NULL;
		why = of_this ? of_this : why;
		cooldown += cooldown_ns > 0;
		if (cooldown_ns && (!first_ns || cooldown_ns < first_ns))
			first_ns = cooldown_ns;
	}
	if (unknown) {
		json_object_set_new(to, "cards_of_unknown_use", json_integer(unknown));
		json_object_set_new(to, "use_unknown", json_string(why));
	}
	if (cooldown) {
		json_object_set_new(to, "cards_shut", json_integer(cooldown));
		json_object_set_new(to, "open_in_s", json_integer(seconds_of(first_ns)));
	}
}

void explain_add_share(json_t *to, const struct inventory_share *share)
{
	json_object_set_new(to, "memory_mib", json_integer(share->memory_mib));
	json_object_set_new(to, "cores_pct", json_integer(share->cores_pct));
	if (share->borrowed_pct)
		json_object_set_new(to, "lent_pct", json_integer(share->borrowed_pct));
}

json_t *explain_text(const char *text)
{
	char clean[ERROR_TEXT_MAX];
	snprintf(clean, sizeof(clean), "%s", text);
	text_clean(clean);
	return json_string(clean);
}

/*
 * The resources that other pods would have to free on a card. `parts` is the sum of memory, compute and a missing slot (place
 * for one share), each as a fraction of the card's total. Cards are compared by `parts`.
 */
struct lack {
	uint64_t memory_bytes;
	uint32_t cores_mpct;
	double parts;
};

static uint64_t shortage(uint64_t wanted, uint64_t left)
{
	return wanted > left ? wanted - left : 0;
}

/* Returns false if the card would not serve the request even without other pods. */
static bool lack_of(const struct place_card *card, const struct place_request *request,
		    enum place_reason reason, struct lack *ret)
{
	const struct place_need need = place_need(card, request);
	struct lack lack = {
		.memory_bytes = shortage(need.memory_bytes, place_memory_left(card)),
		.cores_mpct = (uint32_t)shortage(need.cores_mpct, place_cores_left(card)),
	};
	switch (reason) {
	case PLACE_CARD_NOT_SERVED:
	case PLACE_CARD_USE_UNKNOWN:
	case PLACE_CARD_NOT_HEALTH:
	case PLACE_CARD_CORDONED:
	case PLACE_CARD_TYPE_MISMATCH:
	case PLACE_CARD_UUID_MISMATCH:
	case PLACE_QUOTA_NOT_FIT: return false; /* freeing the card would not help */
	case PLACE_CARD_TIME_SLICING_EXHAUSTED: lack.parts = 1.0 / card->slots_total; break;
	case PLACE_EXCLUSIVE_CONFLICT:
		lack.memory_bytes = card->memory_used_bytes;
		lack.cores_mpct = card->cores_used_mpct;
		lack.parts = 1.0 / card->slots_total;
		break;
	case PLACE_COMPUTE_UNITS_EXHAUSTED: lack.cores_mpct = MPCT; break;
	default: break;
	}
	if (need.memory_bytes > card->memory_total_bytes || need.cores_mpct > card->cores_total_mpct)
		return false;
	if (card->memory_total_bytes)
		lack.parts += (double)lack.memory_bytes / (double)card->memory_total_bytes;
	if (card->cores_total_mpct)
		lack.parts += (double)lack.cores_mpct / card->cores_total_mpct;
	*ret = lack;
	return true;
}

static int compare_lacks(const void *a, const void *b)
{
	double one = ((const struct lack *)a)->parts, other = ((const struct lack *)b)->parts;
	return (one > other) - (one < other);
}

/*
 * Returns what other pods would have to free on the node. Counts only the cards that lack least, as many as the request wants.
 * Returns NULL if the node would not serve the request even without other pods.
 */
static json_t *node_lacks(const struct model *m, const struct model_node *node,
			  const struct place_card *card, const struct fit_reasons *reasons)
{
	const struct place_request *request = &reasons->part->place;
	struct lack lack[PLACE_MAX_CARDS], most = { 0 };
	unsigned able = 0, short_of = 0;
	for (unsigned i = 0; i < node->inventory.count; i++)
		able += !explain_is_cooling(m, node, i) &&
			lack_of(&card[i], request, reasons->reason[i], &lack[able]);
	if (able < request->count)
		return NULL;
	qsort(lack, able, sizeof(lack[0]), compare_lacks);
	for (unsigned i = 0; i < request->count; i++) {
		short_of += lack[i].parts > 0;
		most.parts += lack[i].parts;
		if (lack[i].memory_bytes > most.memory_bytes)
			most.memory_bytes = lack[i].memory_bytes;
		if (lack[i].cores_mpct > most.cores_mpct)
			most.cores_mpct = lack[i].cores_mpct;
	}
	/* Round up, so that freeing the named amount suffices. */
	return json_pack("{s:i,s:I,s:i,s:i}", "cards", (int)short_of, "memory_mib",
			 (json_int_t)((most.memory_bytes + (1u << MIB_BITS) - 1) >> MIB_BITS),
			 "cores_pct", (int)((most.cores_mpct + MPCT - 1) / MPCT), "permille",
			 (int)(most.parts * 1000 + 0.5));
}

static json_t *count_reasons(const struct inventory *inventory, const struct fit_reasons *reasons)
{
	json_t *object = json_object();
	unsigned of[PLACE_REASON_COUNT] = { 0 };
	if (reasons->part->place.count > inventory->count) {
		json_object_set_new(object, TOO_FEW_CARDS, json_integer(inventory->count));
		return object;
	}
	for (unsigned i = 0; i < inventory->count; i++)
		of[reasons->reason[i]]++;
	for (unsigned r = PLACE_FITS + 1; r < PLACE_REASON_COUNT; r++)
		if (of[r])
			json_object_set_new(object, place_reason_name(r), json_integer(of[r]));
	return object;
}

/* Adds the most free memory of a card that lacks memory, and the most free compute of a card that lacks compute. */
static void add_most(json_t *to, const struct place_card *card, unsigned count,
		     const enum place_reason *reason)
{
	uint64_t memory = 0;
	uint32_t cores = 0;
	bool is_of_memory = false, is_of_cores = false;
	for (unsigned i = 0; i < count; i++) {
		if (reason[i] == PLACE_CARD_INSUFFICIENT_MEMORY) {
			uint64_t left = place_memory_left(&card[i]);
			memory = left > memory ? left : memory;
			is_of_memory = true;
		} else if (reason[i] == PLACE_CARD_INSUFFICIENT_CORE) {
			uint32_t left = place_cores_left(&card[i]);
			cores = left > cores ? left : cores;
			is_of_cores = true;
		}
	}
	if (is_of_memory)
		json_object_set_new(to, "most_free_mib",
				    json_integer((json_int_t)(memory >> MIB_BITS)));
	if (is_of_cores)
		json_object_set_new(to, "most_free_cores_pct", json_integer(cores / MPCT));
}

/* `card`: the cards as fit_check() saw them, perhaps charged with the pod's other containers. */
static void add_why_not(json_t *to, const struct model *m, const struct model_node *node,
			const struct place_card *card, const struct fit_reasons *reasons)
{
	char text[REASON_MAX];
	const struct inventory *inventory = &node->inventory;
	json_t *lacks = node_lacks(m, node, card, reasons);
	json_object_set_new(to, "verdict", json_string(lacks ? "full" : "unfit"));
	fit_reasons_text(inventory, reasons, text, sizeof(text));
	json_object_set_new(to, "why", json_string(text));
	json_object_set_new(to, "container", json_integer((json_int_t)reasons->part->container));
	json_object_set_new(to, "beside_others", json_boolean(m->fit.picks > 0));
	json_object_set_new(to, "reasons", count_reasons(inventory, reasons));
	add_most(to, card, inventory->count, reasons->reason);
	if (lacks)
		json_object_set_new(to, "lacks", lacks);
}

static json_t *list_holders(const struct model_node *node, const char *card)
{
	json_t *list = json_array();
	for (const struct model_pod *pod = node->pods; pod; pod = pod->next)
		for (unsigned i = 0; i < pod->charged->shares.count; i++) {
			const struct inventory_share *s = &pod->charged->shares.share[i];
			if (s->card != card)
				continue;
			json_t *one = json_pack("{s:s,s:s,s:i}", "namespace", pod->pod_namespace,
						"pod", model_pod_name(pod), "container",
						(int)s->container);
			explain_add_share(one, s);
			json_array_append_new(list, one);
		}
	return list;
}

static json_t *list_cards(const struct model *m, const struct model_node *node,
			  const struct place_card *card, const enum place_reason *reason)
{
	json_t *list = json_array();
	for (unsigned i = 0; i < node->inventory.count; i++) {
		const struct place_card *c = &card[i];
		json_t *one = json_pack("{s:s,s:i,s:s,s:I,s:I,s:i,s:i,s:i,s:i}", "uuid", c->uuid,
					"index", (int)i, "type", c->type, "memory_mib",
					(json_int_t)(c->memory_total_bytes >> MIB_BITS), "free_mib",
					(json_int_t)(place_memory_left(c) >> MIB_BITS), "cores_pct",
					(int)(c->cores_total_mpct / MPCT), "free_cores_pct",
					(int)(place_cores_left(c) / MPCT), "slots",
					(int)c->slots_total, "slots_used", (int)c->slots_used);
		explain_add_card_use(one, m, node, i);
		json_object_set_new(one, "reason", json_string(place_reason_name(reason[i])));
		json_object_set_new(one, "pods", list_holders(node, c->uuid));
		json_array_append_new(list, one);
	}
	return list;
}

static json_t *verdict(const struct model_node *node, const char *word)
{
	return json_pack("{s:s,s:s}", "node", node->name, "verdict", word);
}

/* Returns why the pod may not use a node that it fits; NULL if it may. The verb filter makes the same checks, in this order. */
static json_t *why_left(const struct model *m, const struct model_node *node,
			const struct model_pod *pod)
{
	const struct model_pod *first = model_nominated_pod(m, node, pod->text, pod->priority);
	if (first)
		return json_sprintf(EXTENDER_NOMINATED, first->pod_namespace, model_pod_name(first));
	return model_backfill_bars(m, node, pod)
		       ? json_sprintf(EXTENDER_RESERVED, model_backfill_name(m))
		       : NULL;
}

json_t *explain_node(struct model *m, const struct model_node *node, const struct model_pod *pod,
		     bool has_cards)
{
	const struct request *request = pod->request;
	struct inventory view;
	const struct inventory *inventory;
	const struct place_card *card;
	struct fit_reasons reasons = { 0 };
	json_t *object;
	if (node->cards_error) {
		object = verdict(node, "aside");
		json_object_set_new(object, "why", explain_text(node->cards_error));
		return object;
	}
	if (!node->inventory.count)
		return verdict(node, "without cards");
	inventory = fit_visible_cards(&m->fit, &node->inventory, &view);
	card = inventory->card;
	/* add_why_not() reads `picks`, but fit_check() sets it only when it places the pod's other containers first. */
	m->fit.picks = 0;
	if (fit_check(&m->fit, &node->inventory, &reasons)) {
		json_t *why = why_left(m, node, pod);
		object = verdict(node, why ? "left" : "fits");
		json_object_set_new(
			object, "score",
			json_real(place_cards_score(node->inventory.card, inventory->count)));
		if (why)
			json_object_set_new(object, "why", why);
		if (request->count)
			fit_each_card(&m->fit, inventory, &request->part[0], reasons.reason);
	} else {
		object = verdict(node, "unfit");
		card = m->fit.picks ? m->fit.card : inventory->card;
		add_why_not(object, m, node, card, &reasons);
	}
	explain_add_use(object, m, node);
	json_object_set_new(object, "cards", json_integer(inventory->count));
	if (has_cards)
		json_object_set_new(object, "card", list_cards(m, node, card, reasons.reason));
	return object;
}
