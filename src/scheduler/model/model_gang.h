/*
 * The model's gangs: which pods form a gang, the state of each pod (pod_gang.h), and how long reservations are kept for the
 * gang. Internal to the model and the extender. A pod outside gangs has no struct gang_rank.
 *
 *     gangs: "namespace/name" -> gang -> its members, the oldest first: model_pod->member
 */
#pragma once

#include "scheduler/gang/pod_gang.h"
#include "scheduler/gang/gang_read.h"
#include "scheduler/model/model_inside.h"

/* A pod of a gang: a member. */
struct gang_rank {
	struct gang *gang;
	struct model_pod *pod;
	struct gang_rank *next;
	unsigned size;      /* gang size that this pod names; 0 if none */
	uint64_t source;    /* digest of the pod's request (request_source()) */
	char *gang_error;   /* why the pod's gang annotations are malformed; owned; NULL if valid */
	json_t *candidates; /* nodes named by the pod's last filter call; NULL if there was none */
	bool is_gated;      /* the pod has scheduling gates */
	/* waits_to_bind: the pod's bind call waits for the gang's other pods; is_binding: the binding has begun */
	bool waits_to_bind, is_binding;
};

struct gang {
	struct string_map_entry entry;
	struct gang_rank *first;
	const char *by; /* name of the annotation or label that names the gang; constant */
	unsigned size;  /* number of pods; 0 if unknown */
	unsigned conflicting_size; /* another size that a pod names; 0 if all agree */
	bool is_size_reported;     /* model_take_unsized() has returned the gang */
	bool was_complete;         /* at least `size` pods existed when last checked */
	/* how many times in a row the gang's reservations expired before bind calls for all its pods came */
	unsigned failures;
	uint64_t reserved_until_ns; /* when the gang's reservations expire; 0 if there are none */
	/* when kube-scheduler is next made to retry the pods that have room but no bind call yet */
	uint64_t retry_at_ns;
	/* after a failure: no search for room begins before this time (gang_backoff_ns()); 0: no pause */
	uint64_t backoff_until_ns;
	/* since when the gang waits for a backfill reservation (backfill_reservation.h); 0: has room, or never searched */
	uint64_t no_room_since_ns;
	/* The last search for room that failed. It would fail again until something changes. */
	uint64_t failed_at; /* the model's `capacity_epoch` + 1 when the search failed; 0: none */
	/* nodes of the failed search, owned by a member; valid while failed_at is set */
	const json_t *failed_candidates;
	unsigned failed_fits; /* number of pods for which the failed search found room */
	uint16_t name_at;     /* offset of the name in `text`, which is "namespace/name" */
	char text[];
};

static inline const char *gang_name(const struct gang *gang)
{
	return gang->text + gang->name_at;
}

/*
 * Adds the pod to the gang that its annotations name; if they name none, removes the pod from its gang. `gang_error` says what
 * is malformed in the annotations (code 0: nothing); its text is copied. Returns 0 or -ENOMEM.
 */
int model_gang_join(struct model *model, struct model_pod *pod, const struct kube_pod *from,
		    const struct gang_annotations *annotations, const struct error *gang_error,
		    struct error *err);
/* Removes the pod from its gang, if any. Call when the pod ends or was deleted. */
void model_gang_leave(struct model *model, struct model_pod *pod);

enum gang_state gang_state_of(const struct gang_rank *member);
struct gang_counts gang_counts_of(const struct gang *gang);

/* Stores the nodes of the member's last filter call, with a reference. Other nodes than before permit a new search. */
void gang_set_candidates(struct gang_rank *member, json_t *names);

/*
 * Call when room is reserved for as many pods as the gang needs. Sets when the reservations expire, and makes kube-scheduler
 * retry the pods that a filter call had rejected, except `but`.
 */
void model_gang_all_reserved(struct model *model, struct gang *gang, const struct gang_rank *but);
/* Records a failed search: only `fits` pods found room. Frees the gang's reservations unless a binding has begun. */
void model_gang_failed(struct model *model, struct gang_rank *asker, unsigned fits);
/* Whether a new search must fail: the last one failed with the same candidate nodes as `asker` has, and no room became free. */
bool model_gang_would_fail(const struct model *model, const struct gang_rank *asker);

/* Call when bind has reserved cards for the pod. Unless a binding has begun, all reservations of the gang expire together. */
void model_gang_reserved(struct model *model, struct gang_rank *member);
/* ---- model_bind_permit.c ---- */

/* Call after a failed binding. True if the pod keeps its reservation: others of its gang are bound or being bound. */
bool model_gang_keeps_reservation(struct model *model, struct gang_rank *member);

/* ---- model_backfill.c ---- */

/* Call when the gang found no room: gives it a backfill reservation if it has waited long enough and no other gang has one. */
void model_backfill_consider(struct model *model, struct gang_rank *asker);
/* Call when the gang has room or is gone: ends its backfill reservation, if any. */
void model_backfill_end(struct model *model, const struct gang *gang);
void model_backfill_advance(struct model *model);
/* Whether the node is reserved for a gang and closed to this pod (NULL: unknown to the model). */
bool model_backfill_bars(const struct model *model, const struct model_node *node,
			 const struct model_pod *pod);
/* Returns the name of the gang with the backfill reservation; "" if there is none. */
const char *model_backfill_name(const struct model *model);

/* ---- model_gang.c ---- */

/* Ends pauses and reservations that have expired. */
void model_gangs_advance(struct model *model);
