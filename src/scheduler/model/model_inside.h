/*
 * Defines the model's structures, for the model and the extender only.
 *
 *     nodes: name -> model_node   inventory, and a list of the pods that are charged to it
 *     pods:  uid  -> model_pod    the shares in its annotations, and its reservation; at most one of the two is charged
 *     quotas: "namespace/name" -> model_quota, namespaces: namespace -> model_namespace    model_quota.c
 *     pending: pods that are not bound yet; only their shares can expire
 *     gangs: "namespace/name" -> gang   model_gang.h
 *
 * A node's entry lives while the node exists or a pod names it; a watch may report a pod before its node.
 */
#pragma once

#include "scheduler/fit/fit.h"
#include "scheduler/model/model.h"
#include "scheduler/opportunistic/cooldown.h"
#include "scheduler/opportunistic/node_use.h"
#include "scheduler/inventory/inventory.h"
#include "scheduler/util/digest.h"
#include "scheduler/util/string_map.h"

struct model_pod;
struct model_room;
struct place_tally;
struct gang_rank;

/* The fields that a filter call reads come first. Such a call scans all nodes, so memory latency limits its speed. */
struct model_node {
	struct string_map_entry entry; /* key: node name */
	struct inventory inventory;    /* empty while the node does not exist */
	uint64_t filtered_in; /* number (model.filters) of the last filter call with this node */
	char *cards_error;    /* why the description of the cards was rejected; NULL if accepted */
	const struct model_pod *nominated_pod; /* evictions make room for it; NULL if none */
	bool exists;
	bool is_reserved;       /* kept for the gang with the backfill reservation */
	bool is_cooldown_dirty; /* the annotation of cooldowns (cooldown.h) must be written */
	bool is_room_stale;     /* the cards' charges have changed since `room` was counted */
	struct place_tally *
		/* how many requests of each kind the cards would serve (model_room.c); owned; NULL if not counted */
		room;
	struct model_pod *pods;      /* list of the pods that are charged to this node */
	size_t references;           /* held by pods */
	uint64_t annotations_digest; /* digest of the annotations about cards, to detect changes */
	unsigned listed_in;          /* number (model.list) of the latest list with this node */
	struct use use;              /* measured use of the cards; empty if place_by_use is off */
	char name[];
};

struct model_allocation {
	struct model_node *node; /* a reference; NULL: no allocation */
	struct inventory_shares shares;
	uint64_t expires_ns; /* when the allocation of an unbound pod is dropped; 0 if never */
};

struct model_quota;

struct model_namespace {
	struct string_map_entry entry; /* key: namespace */
	struct model_quota *quotas;    /* list of the quotas that limit cards */
	struct quota_limits limits;    /* for each kind, the tightest limit of all quotas */
	struct quota_amounts used;     /* sum of what the namespace's pods are charged */
	size_t references;
	char name[];
};

struct model_pod {
	struct string_map_entry entry; /* key: pod uid */
	struct model_allocation annotated, reserved;
	/* the allocation that the node and the quota count: &annotated, &reserved or NULL */
	struct model_allocation *charged;
	struct model_pod *next,
		**at; /* links in the list `pods` of the node to which the pod is charged */
	struct model_pod *next_pending,
		**at_pending;        /* links in the model's `pending` list; NULL if bound */
	struct request *request;     /* the pod's request, while it waits; NULL if malformed */
	char *request_error;         /* why the request is malformed; NULL if valid */
	uint64_t annotations_digest; /* digest of the annotations behind `annotated` */
	/*
	 * The model's `capacity_epoch` + 1 when the latest filter call found no node for the pod. 1: quota of its namespace was
	 * freed since then. 0: no call yet, the latest call found a node, or model_take_requeue() returned the pod since then.
	 */
	uint64_t unschedulable_at;
	/* if only a filter call has named the pod: when the pod is forgotten; 0: the watch has named it */
	uint64_t unseen_until_ns;
	const char *pod_namespace;          /* owned by `name_space` */
	struct model_namespace *name_space; /* a reference */
	struct gang_rank *member;           /* NULL if in no gang */
	int32_t priority;
	int64_t since_s; /* time of placement, in s since 1970, from an annotation; 0: unknown */
	/* how long Kubernetes lets the pod run: activeDeadlineSeconds and the grace period; 0: no limit */
	int64_t lifetime_s;
	/* until when the pod counts as leaving, after its eviction was requested */
	uint64_t leaving_until_ns;
	uint64_t spared_until_ns; /* until when the pod is spared, after its eviction was refused */
	/* node where evictions would make room for the pod; a reference; NULL if none */
	struct model_node *nominated_node;
	uint64_t nominated_ns;
	uint64_t room_kept_ns; /* when room on nominated_node was first kept for the pod */
	/* for nominated_node: pods of lower priority may be evicted too, not just opportunistic ones */
	bool may_preempt;
	bool is_bound, is_terminating;
	unsigned listed_in;        /* number (model.list) of the latest list with this pod */
	bool is_requeue_requested; /* to be returned by model_take_requeue() */
	uint16_t name_at;          /* offset in `text`, after the uid */
	char text[];
};

struct model {
	struct model_terms terms;
	struct string_map nodes, pods, strings, quotas, namespaces, gangs;
	struct model_pod *pending;
	bool is_synced[3];   /* per enum model_kind: a full list has been read */
	unsigned list[3];    /* per enum model_kind: number of lists that have begun */
	uint64_t generation; /* incremented when a node, a pod or its shares change */
	/* number of filter calls so far */
	uint64_t filters;
	uint64_t capacity_epoch; /* incremented when rejected pods may fit; starts at 1 */
	/* when rejected pods first might fit again, since model_take_requeue() last looked for them; 0: not since then */
	uint64_t capacity_freed_ns;
	bool has_requeue_requests;
	uint64_t now_ns;
	int64_t wall_s; /* seconds since 1970, at now_ns; 0 if unknown */
	/* opportunistic pods are evicted only to make room for pods of higher priority */
	bool keeps_opportunistic;
	bool has_cooldown;
	struct fit fit;
	/* the gang with the backfill reservation (backfill_reservation.h); NULL if none */
	struct gang *reservation;
	uint64_t reserved_since_ns;
	/* when that gang has room at the latest, by running pods' deadlines, in s since 1970; 0: unknown */
	int64_t room_by_s;
	struct model_room *room; /* owned; NULL before the first request */
};

static inline const char *model_pod_name(const struct model_pod *pod)
{
	return pod->text + pod->name_at;
}

static inline bool model_is_leaving(const struct model *model, const struct model_pod *pod)
{
	return pod->is_terminating || pod->leaving_until_ns > model->now_ns;
}

static inline struct cooldown_now model_both_clocks(const struct model *model)
{
	return (struct cooldown_now){ model->now_ns, model->wall_s };
}

/* Whether the pod was placed by measured use (scheduler/opportunistic/opportunistic.h). */
static inline bool model_is_opportunistic(const struct model_pod *pod)
{
	return pod->charged && inventory_shares_borrowed_pct(&pod->charged->shares, NULL) > 0;
}

/* ---- model_node.c ---- */

/* Returns NULL if no such node exists. */
struct model_node *model_find_node(const struct model *model, const char *name);
/* Returns the node's entry, made if needed, with a reference. NULL if memory runs out. */
struct model_node *model_node_get(struct model *model, const char *name);
void model_node_put(struct model *model, struct model_node *node);
struct inventory_source model_node_source(const struct model *model, const json_t *node);
void model_nodes_list_end(struct model *model);
void model_nodes_free(struct model *model);

/* ---- model_pod.c ---- */

struct model_pod *model_find_pod(const struct model *model, const char *uid);
/* Between these two calls, the node and the namespace's quota look as if this pod were not there. */
void model_suspend_charge(struct model_pod *pod);
void model_restore_charge(struct model_pod *pod);
/* As model_update_pod(), for an unknown pod of a filter call, which is forgotten after hold_ns unless the watch reports it. */
int model_update_pod_from_filter(struct model *model, json_t *pod, struct error *err);
/*
 * Makes an allocation from shares of the node's cards. Pass it to model_reserve_allocation(), or while it is uncharged to
 * model_free_allocation(). Returns 0, -EINVAL or -ENOMEM.
 */
int model_make_allocation(struct model *model, const struct model_pod *pod, struct model_node *node,
			  const struct kube_shares *shares, struct model_allocation *ret,
			  struct error *err);
/* Frees an allocation that was not charged, so no room becomes free and no rejected pods are retried. */
void model_free_allocation(struct model *model, struct model_allocation *allocation);
/* Charges the allocation in place of the pod's earlier reservation or annotated shares, and takes ownership of it. */
void model_reserve_allocation(struct model *model, struct model_pod *pod,
			      struct model_allocation *allocation);
/* Reserves shares for terms.hold_ns, in place of the pod's earlier ones. On -EINVAL or -ENOMEM nothing is reserved. */
int model_reserve(struct model *model, struct model_pod *pod, struct model_node *node,
		  const struct kube_shares *shares, struct error *err);
void model_drop_reserved(struct model *model, struct model_pod *pod);
void model_pods_list_end(struct model *model);
void model_pods_advance(struct model *model);
void model_pods_free(struct model *model);

/* ---- model_quota.c ---- */

/* Returns the namespace's entry, made if needed, with a reference. NULL if memory runs out. */
struct model_namespace *model_namespace_get(struct model *model, const char *name);
void model_namespace_put(struct model *model,
			 struct model_namespace *name_space); /* NULL is allowed */
/* Returns NULL if the namespace has no quota for cards. */
const struct model_namespace *model_find_limited(const struct model *model, const char *name);
/* Limits model->fit to what is left of the namespace's quota, if it has one. */
void model_apply_quota(struct model *model, const char *pod_namespace);
void model_quotas_list_end(struct model *model);
void model_quotas_free(struct model *model);

/* ---- model_requeue.c ---- */

/* Call when cards became free or a node's cards changed: waiting pods may fit now. */
void model_capacity_freed(struct model *model);
/* Like model_capacity_freed(), for the waiting pods of a namespace whose quota was raised. */
void model_quota_freed(struct model *model, const struct model_namespace *name_space);
void model_set_unschedulable(struct model *model, const char *uid, bool is_unschedulable);

/* ---- model_room.c ---- */

/* Counts a new pod's request in the histogram. */
void model_count_request(struct model *model, const struct request *request);
/*
 * Returns the histogram of requests with current prices (policy/placement/room.h), valid until cards change or a request is
 * counted. NULL if no request was counted yet, or memory runs out.
 */
const struct place_histogram *model_histogram(struct model *model);
/*
 * Returns the value of the room that m->fit's request would take from other requests on these cards, at the prices of the last
 * model_histogram(). Each share goes to the card where it takes least. If the request does not fit, returns MODEL_ROOM_ALL, the
 * value of all the cluster's room. `room`: the node's current tally; NULL: counted here.
 */
#define MODEL_ROOM_ALL 1.0
double model_room_loss(struct model *model, const struct inventory *inventory,
		       const struct place_tally *room);
/* Removes the node's room from the totals. Call before the node's cards are dropped or replaced. */
void model_room_forget(struct model *model, struct model_node *node);
/*
 * Call after cards outside of the model were freed, such as those of a Node object in a request. Drops all cached counts: their
 * keys contain addresses of card types' interned strings, and a new string may get the address of a freed one.
 */
void model_room_strings_freed(struct model *model);
void model_room_free(struct model *model);

/* ---- model_opportunistic.c, model_displace.c ---- */

/* Closes a card to opportunistic pods for a while (opportunistic_cooldown()); model_take_cooldown() then returns the node. */
void model_cooldown_card(struct model *model, struct model_node *node, unsigned card);
/* Writes the pod to *ret; from now on the pod counts as leaving. */
void model_start_eviction(struct model *model, struct model_pod *opportunistic,
			  struct model_eviction *ret);
/*
 * Whether evictions would make room on `node`: of opportunistic pods and, with `may_preempt`, of pods of lower priority.
 * *ret_priority: the highest priority of victims that are not opportunistic; INT32_MIN if none.
 */
bool model_nomination_cost(struct model *model, const struct request *request, const char *uid,
			   bool may_preempt, const char *node, int32_t *ret_priority);
/* Nominates the node for the pod. Some seconds later model_take_evictions() returns the pods to evict there. */
void model_nominate(struct model *model, const char *uid, bool may_preempt, const char *node);
/* Returns the pod for which the node's room is kept from pod `uid` of this priority; NULL: pod `uid` may take the room. */
const struct model_pod *model_nominated_pod(const struct model *model, const struct model_node *node,
					    const char *uid, int32_t priority);
void model_clear_nomination(struct model *model, struct model_pod *pod);
size_t model_take_displaced(struct model *model, struct model_eviction *ret, size_t most);
