/*
 * What the model is made of: for its own files and the extender's verbs.
 *
 *     nodes: name -> model_node   inventory, and a list of the pods that are charged to it
 *     pods:  uid  -> model_pod    what its annotations note, what is reserved for it; at most one of both is charged
 *     quotas: "namespace/name" -> model_quota, spaces: namespace -> model_space    model_quota.c
 *     open:  the pods that are bound to no node yet: only they have anything that time takes back
 *
 *     gangs: "namespace/name" -> gang   model_gang.h
 *
 * A node is kept while it is there or a pod names it: pods may be heard of before their node.
 */
#pragma once

#include "scheduler/fit/fit.h"
#include "scheduler/model/model.h"
#include "scheduler/opportunistic/cooldown.h"
#include "scheduler/opportunistic/use.h"
#include "scheduler/inventory/inventory.h"
#include "scheduler/util/digest.h"
#include "scheduler/util/string_map.h"

struct model_pod;
struct model_room;  /* model_room.c */
struct place_tally; /* policy/placement/room.h */
struct gang_rank;   /* model_gang.h */

/* What a filter looks at goes first: it passes over all of them, and waits for memory most of its time. */
struct model_node {
	struct string_map_entry entry;    /* by its name */
	struct inventory inventory;       /* empty while it is not there */
	uint64_t filtered_in;             /* the model's `filters` as one asked about it */
	char *aside;                      /* why what it says can't be true; NULL: it can */
	const struct model_pod *kept_for; /* others end here for its sake; NULL: for nobody's */
	bool is_there, is_listed;
	bool is_reserved; /* lone pods leave it to the model's backfill reservation */
	bool is_cooldown_news; /* which of its cards are shut to opportunistic pods is to be written to it */
	bool is_room_old;         /* its cards are used otherwise since `room` was counted */
	struct place_tally *room; /* for what is asked for (model_room.c); owned; NULL: not counted yet */
	struct model_pod *pods; /* that are charged here */
	size_t references;      /* of what pods hold */
	uint64_t said;          /* a digest of its annotations, to know them again */
	struct use use;         /* of its cards: of nothing, unless pods are placed by use */
	char name[];
};

struct model_hold {
	struct model_node *node; /* NULL: there is none; a reference */
	struct inventory_hold hold;
	uint64_t expires_ns; /* 0: never */
};

struct model_quota;

/* A namespace, while pods or quotas are of it. */
struct model_space {
	struct string_map_entry entry; /* by its name */
	struct model_quota *quotas;    /* of cards */
	struct quota_limits limits;    /* of all of these */
	struct quota_amounts used;     /* by what its pods are charged */
	size_t references;
	char name[];
};

struct model_pod {
	struct string_map_entry entry; /* by its uid */
	struct model_hold noted, reserved;
	struct model_hold *charged;             /* one of both, or NULL */
	struct model_pod *next, **at;           /* of the node that it is charged to */
	struct model_pod *next_open, **at_open; /* NULL: it is bound */
	struct request *request; /* while it is open: what it asks for; NULL: can't be read */
	char *broken;            /* why not; NULL: it can */
	uint64_t said;           /* a digest of what was noted */
	uint64_t turned_away_at; /* the model's `rooms` + 1 as a filter found no node for it; 0: none did, or it was told of */
	uint64_t unseen_until_ns; /* known by a filter's call alone, no watch has named it yet; 0: one has */
	const char *pod_namespace; /* the name of `space` */
	struct model_space *space; /* a reference */
	struct gang_rank *member;  /* NULL: it is in no gang */
	int32_t priority;
	int64_t since_s;   /* when it was placed, as its annotation says; 0: it does not */
	uint64_t going_ns; /* its eviction was asked for: until then it is taken to go */
	uint64_t kept_ns;  /* that was refused: until then it stays */
	struct model_node *wants; /* it would find room there if others ended; NULL: nowhere; a reference */
	uint64_t wants_ns; /* since then */
	bool may_preempt;  /* there, who has a lower priority, and not opportunistic pods alone */
	bool is_bound, is_ending, is_listed;
	bool is_called;   /* to be told of, as one that was passed over */
	uint16_t name_at; /* in `text`, behind the uid */
	char text[];
};

struct model {
	struct model_terms terms;
	struct string_map nodes, pods, words, quotas, spaces, gangs;
	struct model_pod *open;
	bool is_synced[3]; /* enum model_kind */
	uint64_t changes;  /* grows with each change of a node, or of what a pod is or has */
	uint64_t filters;  /* how many have been asked */
	uint64_t rooms;    /* how often there may have come to be more room; from 1 on */
	uint64_t room_ns; /* since when pods that were turned away are to be looked for; 0: they are not */
	bool has_called; /* there is a pod that is_called */
	uint64_t now_ns;
	int64_t wall_s;           /* at now_ns; 0: nobody has said */
	bool keeps_opportunistic; /* they are evicted for nobody */
	bool has_cooldown;        /* there is a node that is_cooldown_news */
	struct fit fit;
	struct gang *reservation; /* who has one (backfill_reservation.h); NULL: nobody */
	uint64_t reserved_since_ns;
	struct model_room *room; /* owned; NULL: nothing was asked for yet */
};

static inline const char *model_pod_name(const struct model_pod *pod)
{
	return pod->text + pod->name_at;
}

/* Its end is under way, or was asked for. */
static inline bool model_is_going(const struct model *model, const struct model_pod *pod)
{
	return pod->is_ending || pod->going_ns > model->now_ns;
}

static inline struct cooldown_now model_both_clocks(const struct model *model)
{
	return (struct cooldown_now){ model->now_ns, model->wall_s };
}

/* It was placed by use: scheduler/opportunistic/opportunistic.h. */
static inline bool model_is_opportunistic(const struct model_pod *pod)
{
	return pod->charged && inventory_hold_borrowed_pct(&pod->charged->hold, NULL) > 0;
}

/* ---- model_node.c ---- */

/* NULL: none is there of that name. */
struct model_node *model_find_node(const struct model *model, const char *name);
/* Its entry, with a reference more; a new one where nothing is known yet. NULL: no memory. */
struct model_node *model_node_take(struct model *model, const char *name);
void model_node_give(struct model *model, struct model_node *node);
/* What a Node object says. */
struct inventory_said model_node_said(const struct model *model, const json_t *node);
void model_nodes_begin(struct model *model);
void model_nodes_synced(struct model *model);
void model_nodes_free(struct model *model);

/* ---- model_pod.c ---- */

struct model_pod *model_find_pod(const struct model *model, const char *uid);
/* What it has is given back, until it is put back: to look at a node as it is without it. */
void model_lift(struct model_pod *pod);
/* One that was not lifted stays as it is. */
void model_put_back(struct model_pod *pod);
/*
 * The same as model_pod(), of a pod that a filter's call was about: it may be ahead of the watch. Without a watch that names
 * it, it is forgotten after a while.
 */
int model_pod_ahead(struct model *model, json_t *pod, struct error *err);
/*
 * What these shares are on that node, to be charged by inventory_charge(). -EINVAL, -ENOMEM. To be given up by model_drop_hold(),
 * while it is not charged, or by model_reserve_hold().
 */
int model_make_hold(struct model *model, const struct model_pod *pod, struct model_node *node,
		    const struct kube_shares *shares, struct model_hold *ret, struct error *err);
/* Nobody is told of room. */
void model_drop_hold(struct model *model, struct model_hold *hold);
/* Charges it, in place of what was reserved for the pod before; it is the pod's. */
void model_reserve_hold(struct model *model, struct model_pod *pod, struct model_hold *hold);
/* Charges these shares for so long, in place of what was reserved for it before. -EINVAL, -ENOMEM: nothing is reserved. */
int model_reserve(struct model *model, struct model_pod *pod, struct model_node *node,
		  const struct kube_shares *shares, struct error *err);
void model_drop_reserved(struct model *model, struct model_pod *pod);
void model_pods_begin(struct model *model);
void model_pods_synced(struct model *model);
void model_pods_advance(struct model *model);
void model_pods_free(struct model *model);

/* ---- model_quota.c ---- */

/* Its entry, with a reference more; a new one where nothing is known yet. NULL: no memory. */
struct model_space *model_space_take(struct model *model, const char *name);
void model_space_give(struct model *model, struct model_space *space); /* NULL is fine */
/* NULL: it has no quota of cards. */
const struct model_space *model_find_limited(const struct model *model, const char *name);
/* The fit that has begun: what is left of its pod's namespace's quota holds, if there is one. */
void model_hold_to_quota(struct model *model, const char *pod_namespace);
void model_quotas_begin(struct model *model);
void model_quotas_synced(struct model *model);
void model_quotas_free(struct model *model);

/* ---- model_passed_over.c ---- */

/* Something was given back for good, or a node says something else of its cards. */
void model_note_room(struct model *model);
/* A namespace may have more. */
void model_note_room_in(struct model *model, const struct model_space *space);
/* What a filter has answered for a pod that will be bound. */
void model_note_turned_away(struct model *model, const char *uid, bool is_turned_away);

/* ---- model_room.c ---- */

/* A pod is there that was not known: what it asks for is counted. */
void model_count_request(struct model *model, const struct request *request);
/*
 * What is asked for, with the prices of now. Valid until the next change of a node's cards or the next count; NULL: nothing is
 * asked for, or there is no memory.
 */
const struct place_histogram *model_histogram(struct model *model);
/*
 * What a request, that of the model's `fit`, would take of the room on such cards, by the prices of the last model_histogram(): its
 * shares go where each takes least. MODEL_ROOM_ALL, what all room of the cluster is worth, where it does not fit. `room`: the
 * node's, which has not changed since; NULL: it is counted.
 */
#define MODEL_ROOM_ALL 1.0
double model_room_loss(struct model *model, const struct inventory *inventory,
		       const struct place_tally *room);
/* The node has no cards any more. */
void model_room_forget(struct model *model, struct model_node *node);
/* The same of cards that are no node's of the model's. */
void model_room_words_gone(struct model *model);
void model_room_free(struct model *model);

/* ---- model_opportunistic.c, model_displace.c ---- */

/* That card of the node is shut to opportunistic pods from now on: model_take_cooldown(). */
void model_cooldown_card(struct model *model, struct model_node *node, unsigned card);
/* It is taken to go from now on. *ret gets its names. */
void model_name_victim(struct model *model, struct model_pod *opportunistic,
		       struct model_eviction *ret);
/*
 * A filter's call has found no node for the pod. Would the end of opportunistic pods, or of pods of lower priority, make room on this one?
 * *ret_priority: the highest of those; INT32_MIN: all are opportunistic pods.
 */
bool model_want_costs(struct model *model, const struct request *request, const char *uid,
		      bool may_preempt, const char *node, int32_t *ret_priority);
/* This one is remembered: who is to go is told by model_take_evictions() some seconds later. */
void model_want(struct model *model, const char *uid, bool may_preempt, const char *node);
/* The pod that room on the node is kept for, before one of that uid and priority; NULL: none. */
const struct model_pod *model_kept_for(const struct model *model, const struct model_node *node,
				       const char *uid, int32_t priority);
void model_forget_want(struct model *model, struct model_pod *pod);
size_t model_take_displaced(struct model *model, struct model_eviction *ret, size_t most);
