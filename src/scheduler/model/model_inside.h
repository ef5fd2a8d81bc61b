/*
 * The model's internal structures, for the files of the model and of the extender only.
 *
 *     nodes: name -> model_node   inventory, and a list of the pods that are charged to it
 *     pods:  uid  -> model_pod    the shares in its annotations (noted) and its reservation; at most one of them is charged
 *     quotas: "namespace/name" -> model_quota, spaces: namespace -> model_space    model_quota.c
 *     open:  list of the pods that are not bound yet; only these can have shares that expire
 *
 *     gangs: "namespace/name" -> gang   model_gang.h
 *
 * A node entry lives while the node exists or a pod names the node. The watch may report a pod before its node.
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
struct model_room;  /* model_room.c */
struct place_tally; /* policy/placement/room.h */
struct gang_rank;   /* model_gang.h */

/* Fields that a filter call reads come first: the call scans all nodes and is bound by memory latency. */
struct model_node {
	struct string_map_entry entry; /* key: node name */
	struct inventory inventory;    /* empty while the node does not exist */
	uint64_t filtered_in; /* value of the model's `filters` at the last filter call that named this node */
	char *aside; /* why the node's description of its cards was rejected; NULL if accepted */
	const struct model_pod
		*kept_for; /* pod for which other pods are evicted from this node; NULL if none */
	bool is_there, is_listed;
	bool is_reserved; /* part of the backfill reservation: closed to lone pods */
	bool is_cooldown_news; /* the node's annotation of cards closed to opportunistic pods must be rewritten */
	bool is_room_old; /* the use of its cards has changed since `room` was counted */
	struct place_tally *
		room; /* its room for the usual requests (model_room.c); owned; NULL if not counted yet */
	struct model_pod *pods; /* list of the pods that are charged to this node */
	size_t references;      /* number of references that pods hold */
	uint64_t said;          /* digest of its annotations, to detect changes */
	struct use use; /* measured use of its cards; empty unless opportunistic pods are enabled */
	char name[];
};

struct model_hold {
	struct model_node *node; /* a reference; NULL if there is no hold */
	struct inventory_hold hold;
	uint64_t expires_ns; /* 0 if never */
};

struct model_quota;

/* A namespace; exists while pods or quotas are in the namespace. */
struct model_space {
	struct string_map_entry entry; /* key: namespace */
	struct model_quota *quotas;    /* list of the quotas that limit cards */
	struct quota_limits limits;    /* the tightest limits of all quotas */
	struct quota_amounts used;     /* sum of what its pods are charged */
	size_t references;
	char name[];
};

struct model_pod {
	struct string_map_entry entry; /* key: pod uid */
	struct model_hold noted, reserved;
	struct model_hold *charged; /* &noted, &reserved or NULL */
	struct model_pod *next,
		**at; /* links in the list `pods` of the node to which the pod is charged */
	struct model_pod *next_open, **at_open; /* links in the model's `open` list; NULL if bound */
	struct request *request; /* the pod's request, while open; NULL if malformed */
	char *broken;            /* why the request is malformed; NULL if valid */
	uint64_t said;           /* digest of the annotations behind `noted` */
	uint64_t turned_away_at; /* value of `rooms` + 1 when a filter call found no node; 0 if none did, or once reported */
	uint64_t unseen_until_ns; /* expiry of a pod known only from a filter call; 0 once the watch has named the pod */
	const char *pod_namespace; /* the name of `space` */
	struct model_space *space; /* a reference */
	struct gang_rank *member;  /* NULL if in no gang */
	int32_t priority;
	int64_t since_s;   /* when the pod was placed, from its annotation; 0 if unknown */
	uint64_t going_ns; /* if its eviction was requested: until when the pod counts as leaving */
	uint64_t kept_ns; /* if its eviction was refused: until when the pod is not evicted again */
	struct model_node *wants; /* node where the pod would fit if other pods ended; a reference; NULL if none */
	uint64_t wants_ns; /* when `wants` was set */
	bool may_preempt; /* pods of lower priority may be evicted from `wants`, not only opportunistic pods */
	bool is_bound, is_ending, is_listed;
	bool is_called;   /* to be returned by model_take_passed_over() */
	uint16_t name_at; /* offset in `text`, after the uid */
	char text[];
};

struct model {
	struct model_terms terms;
	struct string_map nodes, pods, words, quotas, spaces, gangs;
	struct model_pod *open;
	bool is_synced[3]; /* per enum model_kind: a full list has been read */
	uint64_t changes;  /* incremented on each change of a node, of a pod or of its shares */
	uint64_t filters;  /* number of filter calls so far */
	uint64_t rooms;    /* incremented each time that room may have grown; starts at 1 */
	uint64_t room_ns; /* since when rejected pods may fit, and must be found for a retry; 0: none may */
	bool has_called; /* some pod has is_called set */
	uint64_t now_ns;
	int64_t wall_s;           /* seconds since 1970, at now_ns; 0 if unknown */
	bool keeps_opportunistic; /* opportunistic pods are never evicted to make room */
	bool has_cooldown;        /* some node has is_cooldown_news set */
	struct fit fit;
	struct gang *reservation; /* gang with the backfill reservation (backfill_reservation.h); NULL if none */
	uint64_t reserved_since_ns;
	struct model_room *room; /* owned; NULL before the first request */
};

static inline const char *model_pod_name(const struct model_pod *pod)
{
	return pod->text + pod->name_at;
}

/* Returns true if the pod is terminating or its eviction was requested. */
static inline bool model_is_going(const struct model *model, const struct model_pod *pod)
{
	return pod->is_ending || pod->going_ns > model->now_ns;
}

static inline struct cooldown_now model_both_clocks(const struct model *model)
{
	return (struct cooldown_now){ model->now_ns, model->wall_s };
}

/* Returns true if the pod was placed by measured use (scheduler/opportunistic/opportunistic.h). */
static inline bool model_is_opportunistic(const struct model_pod *pod)
{
	return pod->charged && inventory_hold_borrowed_pct(&pod->charged->hold, NULL) > 0;
}

/* ---- model_node.c ---- */

/* Returns NULL if no such node exists. */
struct model_node *model_find_node(const struct model *model, const char *name);
/* Returns the node's entry and takes a reference. Creates the entry if the name is new. Returns NULL if memory runs out. */
struct model_node *model_node_take(struct model *model, const char *name);
void model_node_give(struct model *model, struct model_node *node);
/* Extracts the GPU data of a Node object. */
struct inventory_said model_node_said(const struct model *model, const json_t *node);
void model_nodes_begin(struct model *model);
void model_nodes_synced(struct model *model);
void model_nodes_free(struct model *model);

/* ---- model_pod.c ---- */

struct model_pod *model_find_pod(const struct model *model, const char *uid);
/* Removes the pod's charge until model_put_back(), so that the caller sees the node without this pod. */
void model_lift(struct model_pod *pod);
/* Restores the charge. Does nothing if the pod was not lifted. */
void model_put_back(struct model_pod *pod);
/*
 * Like model_pod(), for the pod of a filter call, which may be newer than the watch. If the watch never names the pod, the
 * model forgets the pod after a while.
 */
int model_pod_ahead(struct model *model, json_t *pod, struct error *err);
/*
 * Converts shares of that node's cards into a hold for inventory_charge(). Returns 0, -EINVAL or -ENOMEM. Pass the hold to
 * model_drop_hold() while uncharged, or to model_reserve_hold().
 */
int model_make_hold(struct model *model, const struct model_pod *pod, struct model_node *node,
		    const struct kube_shares *shares, struct model_hold *ret, struct error *err);
/* Releases a hold without reporting new room. */
void model_drop_hold(struct model *model, struct model_hold *hold);
/* Charges the hold in place of the pod's earlier reservation. The pod takes ownership of the hold. */
void model_reserve_hold(struct model *model, struct model_pod *pod, struct model_hold *hold);
/* Reserves the shares for a limited time, replacing the pod's earlier reservation. On -EINVAL or -ENOMEM, nothing is reserved. */
int model_reserve(struct model *model, struct model_pod *pod, struct model_node *node,
		  const struct kube_shares *shares, struct error *err);
void model_drop_reserved(struct model *model, struct model_pod *pod);
void model_pods_begin(struct model *model);
void model_pods_synced(struct model *model);
void model_pods_advance(struct model *model);
void model_pods_free(struct model *model);

/* ---- model_quota.c ---- */

/* Returns the namespace's entry and takes a reference. Creates the entry if the name is new. Returns NULL if memory runs out. */
struct model_space *model_space_take(struct model *model, const char *name);
void model_space_give(struct model *model, struct model_space *space); /* `space` may be NULL */
/* Returns NULL if the namespace has no quota for cards. */
const struct model_space *model_find_limited(const struct model *model, const char *name);
/* Limits the current `fit` to what is left of the namespace's quota, if there is a quota. */
void model_hold_to_quota(struct model *model, const char *pod_namespace);
void model_quotas_begin(struct model *model);
void model_quotas_synced(struct model *model);
void model_quotas_free(struct model *model);

/* ---- model_passed_over.c ---- */

/* Call when shares were freed for good or a node's description of its cards changed: waiting pods may fit now. */
void model_note_room(struct model *model);
/* Call when a namespace's limits or usage changed so that its pods may get more. */
void model_note_room_in(struct model *model, const struct model_space *space);
/* Records whether a filter call found no node for the pod. */
void model_note_turned_away(struct model *model, const char *uid, bool is_turned_away);

/* ---- model_room.c ---- */

/* Counts the request of a new pod. */
void model_count_request(struct model *model, const struct request *request);
/*
 * Returns the histogram of requests with current prices. The result is valid until a node's cards change or a request is
 * counted. Returns NULL if no requests were counted or memory runs out.
 */
const struct place_histogram *model_histogram(struct model *model);
/*
 * Returns the value of the room that the request of the model's `fit` would use up on these cards, at the prices of the last
 * model_histogram(). Each share goes to the card where the loss is least. Returns MODEL_ROOM_ALL, the value of all room in the
 * cluster, if the request does not fit. `room` is the node's current tally; if NULL, the function counts the room itself.
 */
#define MODEL_ROOM_ALL 1.0
double model_room_loss(struct model *model, const struct inventory *inventory,
		       const struct place_tally *room);
/* Call when the node has no cards any more. */
void model_room_forget(struct model *model, struct model_node *node);
/* Call when interned strings of cards outside the model's nodes were freed. */
void model_room_words_gone(struct model *model);
void model_room_free(struct model *model);

/* ---- model_opportunistic.c, model_displace.c ---- */

/* Closes a card to opportunistic pods from now on. model_take_cooldown() reports the change. */
void model_cooldown_card(struct model *model, struct model_node *node, unsigned card);
/* Counts the pod as leaving from now on and writes its names to *ret. */
void model_name_victim(struct model *model, struct model_pod *opportunistic,
		       struct model_eviction *ret);
/*
 * For a pod that found no node in a filter call: returns true if evictions would make room for it on this node. Victims may be
 * opportunistic pods and, if `may_preempt`, pods of lower priority. *ret_priority gets the highest priority of the victims that
 * are not opportunistic, or INT32_MIN if all are.
 */
bool model_want_costs(struct model *model, const struct request *request, const char *uid,
		      bool may_preempt, const char *node, int32_t *ret_priority);
/* Sets pod->wants to this node. Some seconds later, model_take_evictions() returns the pods to evict from it. */
void model_want(struct model *model, const char *uid, bool may_preempt, const char *node);
/* Returns the pod for which room on the node is kept, so that the pod `uid` of that priority may not take it; NULL if none. */
const struct model_pod *model_kept_for(const struct model *model, const struct model_node *node,
				       const char *uid, int32_t priority);
void model_forget_want(struct model *model, struct model_pod *pod);
size_t model_take_displaced(struct model *model, struct model_eviction *ret, size_t most);
