/*
 * The model's gangs: which pods form a gang, the state of each pod (pod_gang.h), and how long reservations are kept for the
 * gang. Internal to the model and the extender. Pods outside gangs have no such state.
 *
 *     gangs: "namespace/name" -> gang -> its members, in the order in which they came: model_pod->member
 */
#pragma once

#include "scheduler/gang/pod_gang.h"
#include "scheduler/gang/gang_read.h"
#include "scheduler/model/model_inside.h"

struct gang_rank {
	struct gang *gang;
	struct model_pod *pod;
	struct gang_rank *next;
	unsigned size;   /* gang size that this pod names; 0 if none */
	uint64_t source; /* request_source() of the pod */
	char *broken; /* why the pod's gang annotations are malformed; owned; NULL if they are valid */
	json_t *asked; /* node names of the pod's last filter call; NULL if there was none */
	bool is_gated; /* the pod has scheduling gates */
	bool has_come,
		is_going; /* the pod has a reservation, and its state is GANG_COME, or GANG_GOES */
};

struct gang {
	struct string_map_entry entry;
	struct gang_rank *first;
	const char *by;         /* name of the annotation or label that names the gang; constant */
	unsigned size;          /* number of pods; 0 if unknown */
	unsigned other_size;    /* a different size that another pod names; 0 if all agree */
	bool is_told;           /* the missing size has been reported */
	bool was_there;         /* at least `size` pods were there at the last check */
	unsigned failures;      /* times in a row that not all pods came in time */
	uint64_t held_until_ns; /* when the gang's reservations expire; 0 if there are none */
	uint64_t call_at_ns;    /* when to trigger a retry of pods that have not come */
	uint64_t paused_until_ns; /* end of the pause after a failure (gang_pause_ns()); 0 if not paused */
	uint64_t lacks_since_ns; /* since when there is no room for all; 0 if there is room or no attempt was made */
	/* The last failed attempt to find room for all. Until something changes, a new attempt would fail too. */
	uint64_t failed_at; /* value of the model's `rooms` + 1 at that attempt; 0 if there was none */
	const json_t *failed_for; /* node names of that attempt; owned by a member; valid while failed_at is set */
	unsigned failed_fits; /* number of pods for which that attempt found room */
	uint16_t name_at;     /* offset in `text` */
	char text[];
};

static inline const char *gang_name(const struct gang *gang)
{
	return gang->text + gang->name_at;
}

/* Records the gang that the pod names, or in `broken` why the pod's gang annotations are malformed. Returns 0 or -ENOMEM. */
int model_gang_take(struct model *model, struct model_pod *pod, const struct kube_pod *from,
		    const struct gang_said *said, const struct error *broken, struct error *err);
/* Removes the pod from its gang, because the pod ends or was deleted. */
void model_gang_leave(struct model *model, struct model_pod *pod);

enum gang_state gang_state_of(const struct gang_rank *member);
struct gang_roll gang_roll_of(const struct gang *gang);

/* Stores the node names of the member's last filter call. Changed names permit a new attempt. Takes a reference to `names`. */
void gang_note_asked(struct gang_rank *member, json_t *names);

/* Call when all pods got reservations. Sets how long these last, and triggers a retry of rejected pods, except `but`. */
void model_gang_held(struct model *model, struct gang *gang, const struct gang_rank *but);
/* Records a failed attempt in which only `fits` pods found room. Frees the gang's reservations unless bindings have begun. */
void model_gang_failed(struct model *model, struct gang_rank *asker, unsigned fits);
/* Returns true if the last attempt failed and nothing has changed since. */
bool model_gang_still_fails(const struct model *model, const struct gang_rank *asker);

/* Call when bind has reserved cards for this member: makes that reservation last as long as those of its gang's other pods. */
void model_gang_reserved(struct model *model, struct gang_rank *member);
/* ---- model_turn.c ---- */

/* Call after a failed binding. Returns true if the pod keeps its reservation, because other pods of its gang are bound. */
bool model_gang_keeps(struct model *model, struct gang_rank *member);

/* ---- model_backfill.c ---- */

/* Call when the gang found no room: gives the gang a backfill reservation if it has waited long enough. */
void model_backfill_consider(struct model *model, struct gang_rank *asker);
/* Ends the gang's backfill reservation, if any, because the gang has room or is gone. */
void model_backfill_end(struct model *model, const struct gang *gang);
void model_backfill_advance(struct model *model);
/* Returns true if the node is reserved for a gang and closed to this pod. `pod` is NULL if the pod is unknown to the model. */
bool model_backfill_bars(const struct model *model, const struct model_node *node,
			 const struct model_pod *pod);
/* Returns the name of the gang that has the backfill reservation. */
const char *model_backfill_name(const struct model *model);

/* ---- as time goes on ---- */

/* Frees reservations that have expired. */
void model_gangs_advance(struct model *model);
