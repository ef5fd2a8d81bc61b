/*
 * The scheduler's model of the cluster: each node's cards, and each pod's shares of them. The model is built from a watch's
 * objects, in any order. A pod has the shares that its annotations name, or those just reserved for it, until it ends or is
 * deleted. A quota limits the sum of the shares in a namespace.
 *
 *     node -> card (policy/placement/place_node.h): total, used          pod -> its node, its shares of cards
 *
 * Keeps only what decisions need: about 150 bytes per card and 200 per pod. Not thread-safe.
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
	/* how long a reservation lasts, and how long an unbound pod's annotated shares count; 0: 300 s, as in HAMi */
	uint64_t hold_ns;
	/* how long a gang waits before it gets a backfill reservation (backfill_reservation.h); 0: no gang gets one */
	uint64_t gang_patience_ns;
	/* how long a gang's reservations last if bind calls for all its pods do not come; 0: gangs are off */
	uint64_t gang_hold_ns;
};

enum model_kind { MODEL_NODES, MODEL_PODS, MODEL_QUOTAS };

/* Makes an empty model. The strings in `terms` are not copied. Returns 0 or -ENOMEM. */
int model_new(const struct model_terms *terms, struct model **ret);
struct model *model_free(struct model *model);
const struct request_terms *model_request_terms(const struct model *model);

/* model_list_begin() starts a full list of this kind; model_list_end() ends it and removes every object that was not in it. */
void model_list_begin(struct model *model, enum model_kind kind);
void model_list_end(struct model *model, enum model_kind kind);
/*
 * -EAGAIN until a full list of nodes and a full list of pods were read. Place no pod before that. The list of ResourceQuotas is
 * not considered: the caller chooses whether to wait for it too.
 */
int model_check_ready(const struct model *model, struct error *err);

/*
 * Adds or updates a node. Returns 0, -ENOMEM, or -EINVAL if an annotation is malformed. Without a valid description of its
 * cards, the node gets no pods with GPUs. Without its measured use, opportunistic pods are placed there by guarantees.
 */
int model_update_node(struct model *model, const json_t *node, struct error *err);
void model_remove_node(struct model *model, const char *name);

/*
 * Adds or updates a pod. Returns 0, -ENOMEM, or -EINVAL if the object or its annotations of shares are malformed, or if these
 * annotations are ignored because the pod requests no GPU. A malformed request is no error: the pod waits, and explanations
 * have the reason. A pod without shares, GPU request and gang is stored only if a filter call named it.
 */
int model_update_pod(struct model *model, const json_t *pod, struct error *err);
void model_remove_pod(struct model *model, const json_t *pod);

/* Returns 0, -ENOMEM, or -EINVAL if the quota's limits for cards are malformed; the earlier limits then stay. */
int model_update_quota(struct model *model, const json_t *quota, struct error *err);
void model_remove_quota(struct model *model, const json_t *quota);

/* Sets the monotonic time and frees expired reservations. Call about once a second. */
void model_advance(struct model *model, uint64_t now_ns);

/* Sets the wall clock (seconds since 1970), which annotations use. Call with model_advance(). */
void model_set_wall(struct model *model, int64_t wall_s);

/*
 * Frees the reservation that extender_decide() made, unless other pods of its gang are bound or being bound. Call only if the
 * pod certainly was not bound: after a lost answer, the watch's next report or the expiry frees the reservation. Unknown uids
 * are ignored.
 */
void model_release(struct model *model, const char *uid);

/*
 * Pods of a gang (pod_gang.h) are bound only once bind calls for as many pods as the gang's size are waiting.
 *
 *   model_set_bind_waiting()   call after extender_decide() for this pod, and when its bind call has ended
 *   model_binding_started()    call when the pod's binding begins; a gang's pod then keeps its reservation for hold_ns from now
 *   model_bind_permit_text()   writes why the pod waits; returns as snprintf()
 *   model_bind_permit()        returns one of:
 *     MODEL_PERMIT_ALLOW       the binding may begin, as it always may for a pod outside a gang
 *     MODEL_PERMIT_WAIT        bind calls for too few pods of the gang wait; ask again when the model has changed
 *     MODEL_PERMIT_UNRESERVED  the pod is unknown, or a gang's pod neither waits to bind nor is being bound, for example
 *                              because its reservation expired: call extender_decide() again
 */
enum model_bind_permit { MODEL_PERMIT_ALLOW, MODEL_PERMIT_WAIT, MODEL_PERMIT_UNRESERVED };
void model_set_bind_waiting(struct model *model, const char *uid, bool waits_to_bind);
enum model_bind_permit model_bind_permit(const struct model *model, const char *uid);
void model_binding_started(struct model *model, const char *uid);
int model_bind_permit_text(const struct model *model, const char *uid, char *text, size_t size);

/* Returns up to `most` gangs whose pods name no size, each gang once. The strings are valid until the model changes. */
struct model_unsized {
	const char *group; /* "namespace/name" */
	const char *by;    /* the annotation or label that names the gang */
};
size_t model_take_unsized(struct model *model, struct model_unsized *ret, size_t most);

/*
 * Returns up to `most` pods that kube-scheduler should try again. Pods that found no node are returned once, two seconds after
 * room became free, if they still wait. Pods of a gang are returned without delay: when all of the gang's pods exist, when its
 * pause is over, and when room is reserved for it; in the last case again every few seconds until bind calls come. The strings
 * are valid until the model changes.
 */
struct model_requeue_pod {
	const char *pod_namespace, *name;
};
size_t model_take_requeue(struct model *model, struct model_requeue_pod *ret, size_t most);

/* A namespace's quota for cards. The string is valid until the model changes. */
struct model_quota_view {
	const char *pod_namespace;
	struct quota_limits limits;
	struct quota_amounts used;
};
/* False if the namespace has no quota for cards. */
bool model_find_quota(const struct model *model, const char *pod_namespace,
		      struct model_quota_view *ret);
void model_each_quota(const struct model *model,
		      void (*each)(void *data, const struct model_quota_view *view), void *data);

/*
 * Returns up to `most` pods to evict: opportunistic pods (opportunistic.h) that lacked compute for `patience_ns`, and pods
 * whose room a nominated pod needs (model_displace.c). With patience_ns 0, opportunistic pods are evicted only for a pod of
 * higher priority. One call returns all victims for one pod, or of one card, unless they are more than `most`. A returned pod
 * counts as leaving for two minutes, and is not returned again meanwhile. Call about once a second, also with `most` 0. The
 * strings are valid until the model changes.
 */
struct model_eviction {
	const char *pod_namespace, *name, *uid, *node;
	bool is_displaced; /* makes room for another pod; false: too little compute on `card` */
	bool is_preempted; /* not opportunistic, but of lower priority than `for_pod` */
	const char *for_namespace, *for_pod; /* the pod that needs the room, if is_displaced */
	const char *card;
	/* `card`, used_pct and requested_pct are set only if not is_displaced. */
	unsigned used_pct;      /* compute of `card` in use by pods that are not opportunistic */
	unsigned requested_pct; /* compute of `card` that all opportunistic pods requested */
};
size_t model_take_evictions(struct model *model, uint64_t patience_ns, struct model_eviction *ret,
			    size_t most);
/* After a refused eviction, the pod is not chosen for some minutes, but other pods may be. Unknown uids are ignored. */
void model_eviction_refused(struct model *model, const char *uid);
/* After an eviction that failed without a refusal, the pod may be returned again some seconds later. Ignores unknown uids. */
void model_eviction_failed(struct model *model, const char *uid);

/*
 * Returns the next node whose annotation allot.dev/node-shut must be written, because the cooldown of one of its cards began
 * (cooldown.h). The caller sets the annotation to `text` and frees `text`; NULL: removes it, because no cooldown is left.
 * Returns 1, 0 if there is no such node, or -ENOMEM. If the write fails, call model_cooldown_retry().
 */
struct model_cooldown {
	const char *node; /* valid until the model changes */
	char *text;
};
int model_take_cooldown(struct model *model, struct model_cooldown *ret);
void model_cooldown_retry(struct model *model, const char *node);

struct model_counts {
	size_t nodes;          /* nodes that have cards */
	size_t nodes_rejected; /* nodes whose description of their cards was rejected */
	/* pods: with cards; pods_waiting: unbound pods without cards; reservations: pods with a reservation */
	size_t cards, pods, pods_waiting, reservations;
	size_t gangs_waiting; /* gangs of known size, with no pod bound or being bound */
	size_t gangs_placed;  /* gangs whose size is met by pods that are bound or need no card */
};
struct model_counts model_counts(const struct model *model);

/* A card, and a share of a card, at this moment. Strings are valid until the model changes. */
struct model_card_view {
	const char *node;
	unsigned index; /* in the node's list of cards */
	const struct place_card *card;
	const struct use_card *use; /* measured use of the card; NULL if unknown */
	uint64_t borrowed_pct;      /* compute that opportunistic pods requested */
	/* how long the card is still closed to opportunistic pods; 0: open, or use unknown */
	uint64_t cooldown_for_ns;
};
struct model_share_view {
	const char *pod_namespace, *pod, *uid, *node, *card;
	size_t container;
	uint64_t memory_mib;
	unsigned cores_pct;
};
void model_each_card(const struct model *model,
		     void (*each)(void *data, const struct model_card_view *view), void *data);
void model_each_share(const struct model *model,
		      void (*each)(void *data, const struct model_share_view *view), void *data);
