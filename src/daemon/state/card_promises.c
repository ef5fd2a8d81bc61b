#include "daemon/state/card_promises.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "daemon/state/node/drain.h"
#include "daemon/state/pod_stage.h"
#include "daemon/state/tenant.h"

/* Returns true for an init container (not a sidecar), which does not run beside later containers of its pod. */
static bool is_init(const struct tenant *t)
{
	return strchr(t->terms.claim.key, '@') && pod_stage_of(t->terms.claim.key).is_init;
}

static struct stage_amount stage_amount_of(struct tenant *t, unsigned device)
{
	const struct promise *q = &t->terms.device[device].promise;
	struct stage_amount a = { .cores_pct = q->cores_pct };
	if (tenant_is_off_card(t))
		return a;
	if (t->terms.on_full == ON_FULL_WAIT)
		a.granted_bytes = tenant_taken_bytes(t, device);
	else if (t->terms.on_full == ON_FULL_FAIL && q->memory_given)
		a.promised_bytes = q->quota_bytes;
	return a;
}

/*
 * Some containers of a pod never run at the same time (pod_stage.h), so they can use the same memory and cores. Subtracts from
 * `p` what is thereby counted twice. If out of memory, subtracts nothing.
 */
static void take_stages_off(struct node *node, const struct card *card, const struct tenant *except,
			    const struct pod_stage *beside, struct promise_card *p)
{
	struct tenant *t;
	size_t count = 0;
	cleanup_free struct stage_item *items = calloc(p->tenant_count, sizeof(*items));
	if (!items)
		return;
	TAILQ_FOREACH(t, &node->tenants, link)
		for (unsigned i = 0; i < t->terms.device_count; i++) {
			if (t == except || t->terms.device[i].card != card)
				continue;
			items[count++] = (struct stage_item){ pod_stage_of(t->terms.claim.key),
							      stage_amount_of(t, i) };
		}
	struct stage_amount unneeded = pod_stage_unneeded(items, count, beside);
	p->promised_bytes -= unneeded.promised_bytes;
	p->granted_bytes -= unneeded.granted_bytes;
	p->promised_cores_pct -= unneeded.cores_pct;
}

static struct promise_card promised(struct node *node, const struct card *card,
				    const struct tenant *except,
				    bool (*counts)(const struct tenant *tenant), const char *key)
{
	struct promise_card p = { .index = card->index,
				  .memory_bytes = card->info.memory_bytes,
				  .kept_bytes = card->kept_bytes + card->returning_bytes,
				  .may_overcommit = !node->config.refuse_overcommit };
	const struct pod_stage beside = pod_stage_of(key);
	bool has_init = beside.is_init;
	struct tenant *t;
	TAILQ_FOREACH(t, &node->tenants, link) {
		if (t == except || (counts && !counts(t)))
			continue;
		has_init |= is_init(t);
		bool is_off = tenant_is_off_card(t);
		for (unsigned i = 0; i < t->terms.device_count; i++) {
			const struct promise *q = &t->terms.device[i].promise;
			if (t->terms.device[i].card != card)
				continue;
			struct stage_amount a = stage_amount_of(t, i);
			p.tenant_count++;
			p.promised_cores_pct += a.cores_pct;
			p.granted_bytes += a.granted_bytes;
			p.promised_bytes += a.promised_bytes;
			if (is_off)
				continue;
			if (t->terms.on_full == ON_FULL_SWAP && q->quota_bytes > p.movable_bytes)
				p.movable_bytes = q->quota_bytes;
			if (t->terms.on_full == ON_FULL_FAIL && !q->memory_given)
				p.unpromised_held_bytes += tenant_usage(t, i).used_bytes;
		}
	}
	if (has_init && p.tenant_count && !counts)
		take_stages_off(node, card, except, beside.uid ? &beside : NULL, &p);
	return p;
}

struct promise_card node_promised(struct node *node, const struct card *card,
				  const struct tenant *except)
{
	return promised(node, card, except, NULL, except ? except->terms.claim.key : "");
}

struct promise_card node_promised_beside(struct node *node, const struct card *card, const char *key)
{
	return promised(node, card, NULL, NULL, key);
}

struct promise_card node_promised_to(struct node *node, const struct card *card,
				     bool (*counts)(const struct tenant *tenant))
{
	struct promise_card p = promised(node, card, NULL, counts, "");
	p.kept_bytes = 0;
	return p;
}

uint64_t node_taken_bytes(const struct card *card, const struct promise_card *p)
{
	return p->promised_bytes + p->unpromised_held_bytes + p->granted_bytes +
	       card->foreign_bytes + drain_bytes(card);
}

static double *user_sum(double *sums, uid_t *uids, size_t *count, uid_t uid)
{
	size_t i = 0;
	while (i < *count && uids[i] != uid)
		i++;
	if (i == *count) {
		uids[i] = uid;
		sums[i] = 0;
		++*count;
	}
	return &sums[i];
}

static void update_guarantees(struct node *node, const struct card *card)
{
	cleanup_free double *sums = calloc(node->tenant_count, sizeof(*sums));
	cleanup_free uid_t *uids = calloc(node->tenant_count, sizeof(*uids));
	double most_pct = INFINITY;
	size_t users = 0;
	struct tenant *t;
	/* node_promised() counts for each pod the most that it needs at any one time. If out of memory, reduce nothing. */
	if (sums && uids && node_promised(node, card, NULL).promised_cores_pct > 100) {
		TAILQ_FOREACH(t, &node->tenants, link)
			for (unsigned i = 0; i < t->terms.device_count; i++)
				if (t->terms.device[i].card == card)
					*user_sum(sums, uids, &users, t->terms.uid) +=
						t->terms.device[i].promise.cores_pct;
		most_pct = promise_user_most_pct(sums, users);
	}
	TAILQ_FOREACH(t, &node->tenants, link)
		for (unsigned i = 0; i < t->terms.device_count; i++) {
			double cores_pct = t->terms.device[i].promise.cores_pct;
			if (t->terms.device[i].card != card)
				continue;
			tenant_set_guarantee(
				t, i,
				isinf(most_pct) ? cores_pct
						: promise_in_force_pct(most_pct,
								       *user_sum(sums, uids, &users,
										 t->terms.uid),
								       cores_pct));
		}
}

void node_update_guarantees(struct node *node)
{
	for (unsigned i = 0; i < node->card_count; i++)
		update_guarantees(node, &node->card[i]);
}

void node_update_unpromised_quotas(struct node *node, const struct card *card)
{
	struct promise_card p = node_promised(node, card, NULL);
	struct tenant *t;
	TAILQ_FOREACH(t, &node->tenants, link)
		for (unsigned i = 0; i < t->terms.device_count; i++)
			if (t->terms.device[i].card == card &&
			    !t->terms.device[i].promise.memory_given && !t->terms.is_retired)
				tenant_set_quota(t, i, promise_unpromised_bytes(&p));
}

/* First find the cards in one walk: each call of node_update_unpromised_quotas() walks over all tenants. */
void node_update_all_unpromised_quotas(struct node *node)
{
	bool has_unpromised[NODE_MAX_CARDS] = { false };
	const struct tenant *t;
	TAILQ_FOREACH(t, &node->tenants, link)
		for (unsigned i = 0; i < t->terms.device_count; i++)
			if (!t->terms.device[i].promise.memory_given)
				has_unpromised[t->terms.device[i].card->index] = true;
	for (unsigned i = 0; i < node->card_count; i++)
		if (has_unpromised[i])
			node_update_unpromised_quotas(node, &node->card[i]);
}
