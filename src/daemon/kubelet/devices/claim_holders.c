#include "daemon/kubelet/devices/claim_holders.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include "base/text_index.h"

struct held {
	TAILQ_ENTRY(held) link;
	struct text_index_entry by_id;
	char id[TENANT_ID_MAX]; /* id of the claim's tenant */
	uint64_t answer;
	char *pod_namespace, *pod, *container;
};

struct claim_holders {
	TAILQ_HEAD(, held) list;
	struct text_index ids;
};

static void forget(struct claim_holders *holders, struct held *h)
{
	TAILQ_REMOVE(&holders->list, h, link);
	text_index_remove(&holders->ids, &h->by_id);
	free(h->pod_namespace);
	free(h->pod);
	free(h->container);
	free(h);
}

static bool is_same(const struct held *h, const struct pod_holder *holder)
{
	return !strcmp(h->pod, holder->pod) && !strcmp(h->pod_namespace, holder->pod_namespace) &&
	       !strcmp(h->container, holder->container);
}

void claim_holders_note(struct claim_holders *holders, const struct claim *claim,
			const struct pod_holder *holder, uint64_t answer)
{
	struct held *h = text_index_find(&holders->ids, claim_terms(claim)->id);
	if (h && is_same(h, holder)) {
		h->answer = answer;
		return;
	}
	if (h)
		forget(holders, h);
	h = calloc(1, sizeof(*h));
	if (!h)
		return;
	strcpy(h->id, claim_terms(claim)->id);
	h->answer = answer;
	h->pod_namespace = strdup(holder->pod_namespace);
	h->pod = strdup(holder->pod);
	h->container = strdup(holder->container);
	TAILQ_INSERT_TAIL(&holders->list, h, link);
	text_index_add(&holders->ids, &h->by_id, h->id, h);
	if (!h->pod_namespace || !h->pod || !h->container)
		forget(holders, h);
}

void claim_holders_end(struct claim_holders *holders, uint64_t answer)
{
	struct held *h, *next;
	for (h = TAILQ_FIRST(&holders->list); h; h = next) {
		next = TAILQ_NEXT(h, link);
		if (h->answer != answer)
			forget(holders, h);
	}
}

bool claim_holders_find(const struct claim_holders *holders, const struct claim *claim,
			struct claim_holder *ret)
{
	const struct held *h = holders ? text_index_find(&holders->ids, claim_terms(claim)->id)
				       : NULL;
	if (!h)
		return false;
	*ret = (struct claim_holder){ h->pod_namespace, h->pod, h->container };
	return true;
}

struct claim_holders *claim_holders_new(void)
{
	struct claim_holders *holders = calloc(1, sizeof(*holders));
	if (holders)
		TAILQ_INIT(&holders->list);
	return holders;
}

struct claim_holders *claim_holders_free(struct claim_holders *holders)
{
	if (!holders)
		return NULL;
	while (!TAILQ_EMPTY(&holders->list))
		forget(holders, TAILQ_FIRST(&holders->list));
	free(holders);
	return NULL;
}
