/*
 * The scheduler's model of the cluster: the cards of each node and the shares of cards that each pod has. The model is built
 * from the objects of a watch, which may come in any order. A pod has the shares that its annotations name, or those
 * that were just reserved for it. The shares are freed when the pod ends or is deleted. Quotas limit the sum of a namespace.
 *
 *     node -> card (policy/placement/place_node.h): total, used          pod -> its node, its shares of cards
 *
 * The model keeps only what it needs of each object: about 150 bytes per card and 200 per pod. Not thread-safe.
 */
#pragma once

#include <jansson.h>
#include <stdint.h>

#include "base/error.h"
#include "scheduler/opportunistic/node_use.h"
#include "scheduler/request/quota.h"
#include "scheduler/request/pod_request.h"

struct model;

struct model_terms {
	struct request_terms request;
	uint64_t hold_ns; /* lifetime of a reservation, or of an assignment whose pod was never bound; if 0, 300 s, as in HAMi */
	uint64_t gang_patience_ns; /* see backfill_reservation.h; if 0, gangs never get a backfill reservation */
	uint64_t gang_hold_ns; /* lifetime of reservations for a gang whose pods have not all come; if 0, gangs are off */
};

enum model_kind { MODEL_NODES, MODEL_PODS, MODEL_QUOTAS };

/* Makes an empty model. The strings in `terms` are not copied and must outlive the model. Returns 0 or -ENOMEM. */
int model_new(const struct model_terms *terms, struct model **ret);
struct model *model_free(struct model *model); /* `model` may be NULL; returns NULL */
const struct request_terms *model_request_terms(const struct model *model);

/* Starts a full list of objects of this kind. model_synced() ends the list and removes every object not named in the list. */
void model_begin(struct model *model, enum model_kind kind);
void model_synced(struct model *model, enum model_kind kind);
/*
 * Returns true once full lists of nodes and of pods have been read. Make no decision before that. Quota lists are not
 * required, because they may never come; a caller may wait for them itself.
 */
bool model_is_ready(const struct model *model);

/*
 * Adds or updates a node. Returns -EINVAL if the node's description of its cards is impossible: the node then gets no pods
 * until its description changes. Returns -ENOMEM if memory runs out.
 */
int model_node(struct model *model, const json_t *node, struct error *err);
void model_node_gone(struct model *model, const char *name);

/*
 * Adds or updates a pod. Returns -EINVAL if the pod's annotations or requests are malformed: the earlier state of the pod then
 * stays. Returns -ENOMEM if memory runs out. Pods that neither have nor request cards are not stored.
 */
int model_pod(struct model *model, const json_t *pod, struct error *err);
void model_pod_gone(struct model *model, const json_t *pod);

/*
 * Adds or updates a ResourceQuota. Returns -EINVAL if its limits for cards are malformed: the earlier limits then stay.
 * Returns -ENOMEM if memory runs out.
 */
int model_quota(struct model *model, const json_t *quota, struct error *err);
void model_quota_gone(struct model *model, const json_t *quota);

/* Sets the current time (monotonic clock) and frees expired reservations. Call about once a second. */
void model_advance(struct model *model, uint64_t now_ns);

/* Sets the wall-clock time, in seconds since 1970, that annotations use. Call together with model_advance(). */
void model_set_wall(struct model *model, int64_t wall_s);

/*
 * Frees what extender_decide() reserved for a pod. Call only when the pod certainly was not bound. If the API server's answer
 * to the bind was lost, do not call: the watch or the expiry settles the case. An unknown uid is ignored.
 */
void model_release(struct model *model, const char *uid);

/*
 * Pods of a gang (pod_gang.h) are bound only once bind calls for as many pods as the gang's size are waiting.
 * model_come(): extender_decide() has decided for this pod, so the pod now waits (`has_come`) or no longer waits.
 * model_turn(): returns MODEL_TURN_GO if the binding may begin, as it always may for a pod outside a gang. MODEL_TURN_LOST means
 * that the model does not know the pod, or that the pod's gang state is not GANG_COME, for example because the reservation
 * expired: call extender_decide() for the pod again.
 * model_go(): records that the binding begins. model_turn_text(): writes why the pod waits; returns as snprintf().
 */
enum model_turn { MODEL_TURN_GO, MODEL_TURN_WAIT, MODEL_TURN_LOST };
void model_come(struct model *model, const char *uid, bool has_come);
enum model_turn model_turn(const struct model *model, const char *uid);
void model_go(struct model *model, const char *uid);
int model_turn_text(const struct model *model, const char *uid, char *text, size_t size);

/*
 * Returns up to `most` pod groups of unknown size, each group once; pods of such a group are placed one by one. The strings
 * belong to the model and are valid until the next call that changes the model.
 */
struct model_unsized {
	const char *group; /* "namespace/name" */
	const char *by;    /* the annotation or label that names it */
};
size_t model_take_unsized(struct model *model, struct model_unsized *ret, size_t most);

/*
 * Returns up to `most` pods that kube-scheduler should try again: pods that found no node before some share of a card was freed,
 * and pods of gangs that should be tried again. A pod is returned once, some seconds after the change, and only if it still
 * waits. The strings belong to the model and are valid until the next call that changes the model.
 */
struct model_passed_over {
	const char *pod_namespace, *name;
};
size_t model_take_passed_over(struct model *model, struct model_passed_over *ret, size_t most);

/* The limits and the usage of a namespace. The string is the model's, valid until the next call that changes the model. */
struct model_quota_view {
	const char *pod_namespace;
	struct quota_limits limits;
	struct quota_amounts used;
};
/* Returns false if the namespace has no quota for cards. */
bool model_find_quota(const struct model *model, const char *pod_namespace,
		      struct model_quota_view *ret);
/* Calls `each` for every namespace that has a quota or a stored pod. */
void model_each_quota(const struct model *model,
		      void (*each)(void *data, const struct model_quota_view *view), void *data);

/*
 * Returns up to `most` pods to evict: opportunistic pods (opportunistic.h) that have had too little compute for `patience_ns`
 * (if 0, no pod is evicted for this reason), and pods that must make room for a pod of higher priority. Each pod is returned once
 * and counts as leaving for two minutes. Call about once a second. The strings belong to the model, valid until the next call
 * that changes the model.
 */
struct model_eviction {
	const char *pod_namespace, *name, *uid, *node;
	bool is_displaced; /* true: evicted to make room for another pod; false: too little compute on `card` */
	bool is_preempted; /* the evicted pod is not opportunistic, but has a lower priority than the other pod */
	const char *for_namespace, *for_pod; /* the other pod, if is_displaced */
	const char *card;
	unsigned used_pct,
		asked_pct; /* compute of `card`: used by other pods; requested by all opportunistic pods */
};
size_t model_take_evictions(struct model *model, uint64_t patience_ns, struct model_eviction *ret,
			    size_t most);
/* Call when the eviction of a pod was refused. The pod is spared for some minutes; others may be chosen. Ignores unknown uids. */
void model_keep_opportunistic(struct model *model, const char *uid);
/* Call when the eviction of a pod failed for another reason. Some seconds later the pod may be named again. Ignores unknown uids. */
void model_eviction_failed(struct model *model, const char *uid);

/*
 * Returns the next node whose set of cards closed to opportunistic pods has changed. The caller must set the node's annotation
 * allot.dev/node-shut to `text`, or remove the annotation if `text` is NULL, and must free `text`. Returns 1 if *ret was
 * written, 0 if there is no more such node, or -ENOMEM. Call model_cooldown_again() if the annotation could not be written.
 */
struct model_cooldown {
	const char *node; /* the model's, valid until the next call that changes the model */
	char *text;
};
int model_take_cooldown(struct model *model, struct model_cooldown *ret);
void model_cooldown_again(struct model *model, const char *node);

struct model_counts {
	size_t nodes;       /* nodes that have cards */
	size_t nodes_aside; /* nodes whose description of their cards was rejected */
	size_t cards, pods /* that have cards */, pods_waiting, reservations;
	size_t gangs_waiting; /* gangs that are not placed, and of which no pod is bound or being bound */
	size_t gangs_placed; /* gangs of which as many pods as the gang's size are bound, or need no card */
};
struct model_counts model_counts(const struct model *model);

/* The current state of one card, and of one share of a card. Strings are valid until the next call that changes the model. */
struct model_card_view {
	const char *node;
	unsigned index; /* in the node's list of cards */
	const struct place_card *card;
	const struct use_card *use; /* measured use of the card; NULL if unknown */
	uint64_t borrowed_pct;      /* compute that opportunistic pods have requested */
	uint64_t cooldown_for_ns; /* how long the card stays closed to opportunistic pods; 0 if the card is open */
};
struct model_share_view {
	const char *pod_namespace, *pod, *uid, *node, *card;
	size_t container;
	uint64_t memory_mib;
	unsigned cores_pct;
};
/* Call `each` for every card or share; for metrics. */
void model_each_card(const struct model *model,
		     void (*each)(void *data, const struct model_card_view *view), void *data);
void model_each_share(const struct model *model,
		      void (*each)(void *data, const struct model_share_view *view), void *data);
