/*
 * The cluster as the scheduler knows it: the cards of each node, and what of them each pod has, from the objects that a
 * watch brings, one after the other and in any order. What a pod has is what its annotations say, or what was reserved for
 * it a moment ago; it is given back when the pod ends or is gone. A namespace's quotas say what its pods may have together.
 *
 *     node -> card (policy/placement/node.h): total, used          pod -> its node, its shares of cards
 *
 * Of an object nothing is kept but what is needed: some 150 bytes a card, 200 a pod. One thread.
 */
#pragma once

#include <jansson.h>
#include <stdint.h>

#include "base/error.h"
#include "scheduler/opportunistic/use.h"
#include "scheduler/request/quota.h"
#include "scheduler/request/request.h"

struct model;

struct model_terms {
	struct request_terms request;
	uint64_t hold_ns; /* how long a reservation holds, or a choice that was never bound; 0: as HAMi, 300 s */
	uint64_t gang_patience_ns; /* backfill_reservation.h; 0: lone pods leave nothing to gangs */
	uint64_t gang_hold_ns; /* the same of the room for a gang whose pods have not all come; 0: there are no gangs */
};

enum model_kind { MODEL_NODES, MODEL_PODS, MODEL_QUOTAS };

/* The texts in `terms` are kept, not copied. -ENOMEM. */
int model_new(const struct model_terms *terms, struct model **ret);
struct model *model_free(struct model *model); /* NULL is fine; returns NULL */
const struct request_terms *model_request_terms(const struct model *model);

/* A list follows: what it does not name by the time of model_synced() is gone. */
void model_begin(struct model *model, enum model_kind kind);
void model_synced(struct model *model, enum model_kind kind);
/* Have nodes and pods been complete once? Before that nothing may be decided. Quotas may never come: who asks may wait for them. */
bool model_is_ready(const struct model *model);

/*
 * A node is there, or has changed. -EINVAL: what it says of its cards can't be true: it is set aside, so that no pod is
 * given to it, until it says something else; -ENOMEM.
 */
int model_node(struct model *model, const json_t *node, struct error *err);
void model_node_gone(struct model *model, const char *name);

/*
 * A pod is there, or has changed. -EINVAL: what it says can't be read: what was known of it stays; -ENOMEM. Only a pod that
 * has cards, or asks for some, is kept.
 */
int model_pod(struct model *model, const json_t *pod, struct error *err);
void model_pod_gone(struct model *model, const json_t *pod);

/*
 * A ResourceQuota is there, or has changed. -EINVAL: what it says of cards can't be meant: what was known of it stays; -ENOMEM.
 */
int model_quota(struct model *model, const json_t *quota, struct error *err);
void model_quota_gone(struct model *model, const json_t *quota);

/* It is so late now, by a clock that never goes back: what was held for too long is given back. To be called each second or so. */
void model_advance(struct model *model, uint64_t now_ns);

/* What the clock on the wall says, in seconds since 1970: for what is read from annotations, and written to them. Together with the above. */
void model_set_wall(struct model *model, int64_t wall_s);

/*
 * What extender_decide() reserved for a pod is given back, once it is certain that it was not bound: where an answer never
 * came the watch, or time, will tell. A uid that is not known is fine.
 */
void model_release(struct model *model, const char *uid);

/*
 * Pods of a gang (gang.h) are bound while as many as its size are asked to be. model_come(): extender_decide() has decided for
 * this one, and it waits from now on; or it does not any more. model_turn(): may its binding begin? LOST: its room is kept no
 * longer, and it is to be asked for anew. model_go(): it begins. A pod that is in no gang may at once. model_turn_text(): why
 * not, as snprintf().
 */
enum model_turn { MODEL_TURN_GO, MODEL_TURN_WAIT, MODEL_TURN_LOST };
void model_come(struct model *model, const char *uid, bool has_come);
enum model_turn model_turn(const struct model *model, const char *uid);
void model_go(struct model *model, const char *uid);
int model_turn_text(const struct model *model, const char *uid, char *text, size_t size);

/* Groups of pods that nobody has said the size of, each once: their pods are placed each by itself. Texts as below. */
struct model_unsized {
	const char *group; /* "namespace/name" */
	const char *by;    /* the annotation or label that names it */
};
size_t model_take_unsized(struct model *model, struct model_unsized *ret, size_t most);

/*
 * Pods that no node was found for, before something of the cards was given back: each is told of once, some seconds later,
 * unless it has got what it asked for meanwhile; and pods of gangs that are to come. `most` at a time; texts are the model's, until the next call that changes it.
 */
struct model_passed_over {
	const char *pod_namespace, *name;
};
size_t model_take_passed_over(struct model *model, struct model_passed_over *ret, size_t most);

/* A namespace: what its pods may have, and have; the text is the model's, until the next call that changes it. */
struct model_quota_view {
	const char *pod_namespace;
	struct quota_limits limits;
	struct quota_amounts used;
};
/* false: it has no quota of cards. */
bool model_find_quota(const struct model *model, const char *pod_namespace,
		      struct model_quota_view *ret);
/* Each namespace of a quota, or of a pod that is kept. */
void model_each_quota(const struct model *model,
		      void (*each)(void *data, const struct model_quota_view *view), void *data);

/*
 * Opportunistic pods (opportunistic.h) that have had too little for `patience_ns` (0: none goes), and pods that are in the way of others of higher
 * priority, and are to go: each is returned once, and counts as leaving for two
 * minutes. To be called each second or so. `most` at a time; texts are the model's, until the next call that changes it.
 */
struct model_eviction {
	const char *pod_namespace, *name, *uid, *node;
	bool is_displaced; /* another pod needs its memory or its place; else it has too little of: */
	bool is_preempted; /* it is no opportunistic pod: that pod has a higher priority */
	const char *for_namespace, *for_pod; /* that pod */
	const char *card;
	unsigned used_pct, asked_pct; /* of that card: by others; by all opportunistic pods */
};
size_t model_take_evictions(struct model *model, uint64_t patience_ns, struct model_eviction *ret,
			    size_t most);
/* It may not be evicted: it stays for some minutes, and others go in its place. A uid that is not known is fine. */
void model_keep_opportunistic(struct model *model, const char *uid);

/*
 * Nodes with cards that were shut to opportunistic pods since this was asked: their annotation allot.dev/node-shut is to be `text`, which
 * is the caller's; NULL: there is to be none. 1, 0: no more, or -ENOMEM. model_cooldown_again(): it could not be written.
 */
struct model_cooldown {
	const char *node; /* the model's, until the next call that changes it */
	char *text;
};
int model_take_cooldown(struct model *model, struct model_cooldown *ret);
void model_cooldown_again(struct model *model, const char *node);

struct model_counts {
	size_t nodes;       /* that have cards */
	size_t nodes_aside; /* whose cards can't be true */
	size_t cards, pods /* that have cards */, pods_waiting, reservations;
	size_t gangs_waiting; /* nobody of which is bound */
	size_t gangs_placed;  /* as many as their size are */
};
struct model_counts model_counts(const struct model *model);

/* One card, and one share of one, as they are now; texts are the model's, until the next call that changes it. */
struct model_card_view {
	const char *node;
	unsigned index; /* of the node's list */
	const struct place_card *card;
	const struct use_card *use; /* what is used of it; NULL: not known */
	uint64_t borrowed_pct;      /* that pods placed by use have asked for */
	uint64_t cooldown_for_ns;   /* it takes none of these; 0: it does */
};
struct model_share_view {
	const char *pod_namespace, *pod, *uid, *node, *card;
	size_t container;
	uint64_t memory_mib;
	unsigned cores_pct;
};
/* Each in turn; for metrics. */
void model_each_card(const struct model *model,
		     void (*each)(void *data, const struct model_card_view *view), void *data);
void model_each_share(const struct model *model,
		      void (*each)(void *data, const struct model_share_view *view), void *data);
