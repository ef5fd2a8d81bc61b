/*
 * The model's gangs: which pods belong together, what each may have (gang.h), and for how long room is kept for them. For the
 * model's files and the extender's verbs; a pod in no gang has none of this.
 *
 *     gangs: "namespace/name" -> gang -> its members, in the order in which they came: model_pod->member
 */
#pragma once

#include "scheduler/gang/gang.h"
#include "scheduler/gang/gang_read.h"
#include "scheduler/model/model_inside.h"

struct gang_rank {
	struct gang *gang;
	struct model_pod *pod;
	struct gang_rank *next;
	unsigned size;   /* that it says; 0: none */
	uint64_t source; /* request_source() */
	char *broken;    /* why what it says of its gang can't be read; owned, NULL: it can */
	json_t *asked;   /* names of the nodes of its last filter; NULL: there was none */
	bool is_gated;   /* nobody may schedule it yet */
	bool has_come, is_going; /* of the room that is kept for it: GANG_COME, GANG_GOES */
};

struct gang {
	struct string_map_entry entry;
	struct gang_rank *first;
	const char *by;           /* what named it; constant */
	unsigned size;            /* 0: nobody has said */
	unsigned other_size;      /* that somebody else says; 0: all agree */
	bool is_told;             /* that it has no size */
	bool was_there;           /* as many as its size */
	unsigned failures;        /* how often in a row not all came in time */
	uint64_t held_until_ns;   /* the room that is kept; 0: none is */
	uint64_t call_at_ns;      /* those that have not come are called then */
	uint64_t paused_until_ns; /* 0: it is not */
	uint64_t lacks_since_ns;  /* there is no room for all; 0: there was, or nobody has looked */
	/* Of the last time when there was not room for all: as long as nothing has changed since, there is none. */
	uint64_t failed_at;       /* the model's `rooms` + 1; 0: there was none */
	const json_t *failed_for; /* what was asked then; a member's, as long as failed_at is set */
	unsigned failed_fits;     /* so many would have had some */
	uint16_t name_at;         /* in `text` */
	char text[];
};

static inline const char *gang_name(const struct gang *gang)
{
	return gang->text + gang->name_at;
}

/* Takes in what the pod says of its gang, and why that can't be read; it has been taken in else. -ENOMEM. */
int model_gang_take(struct model *model, struct model_pod *pod, const struct kube_pod *from,
		    const struct gang_said *said, const struct error *broken, struct error *err);
/* It ends, or is gone. */
void model_gang_leave(struct model *model, struct model_pod *pod);

enum gang_state gang_state_of(const struct gang_rank *member);
struct gang_roll gang_roll_of(const struct gang *gang);

/* The nodes of its last filter: what is not the same makes another try worthwhile. A reference is taken. */
void gang_note_asked(struct gang_rank *member, json_t *names);

/* Room was found for all: it is kept from now on. Those that were turned away before are called, but for who asks now. */
void model_gang_held(struct model *model, struct gang *gang, const struct gang_rank *but);
/* There was none: only so many would fit. What is kept for it is given back, unless it has begun. */
void model_gang_failed(struct model *model, struct gang_rank *asker, unsigned fits);
/* Was that so a moment ago, and has nothing changed since? */
bool model_gang_still_fails(const struct model *model, const struct gang_rank *asker);

/* What was reserved for a member in bind is kept as long as its gang's is. */
void model_gang_reserved(struct model *model, struct gang_rank *member);
/* ---- model_turn.c ---- */

/* Its binding has failed: true: its room is kept for it all the same, since others of its gang are bound. */
bool model_gang_keeps(struct model *model, struct gang_rank *member);

/* ---- model_backfill.c ---- */

/* There is no room for the gang: has it waited for long enough to be given a backfill reservation? */
void model_backfill_consider(struct model *model, struct gang_rank *asker);
/* It has room, or is gone; nothing where it has none. */
void model_backfill_end(struct model *model, const struct gang *gang);
void model_backfill_advance(struct model *model);
/* Is the node left to another than the pod? NULL: one that nothing is known of. */
bool model_backfill_bars(const struct model *model, const struct model_node *node,
			 const struct model_pod *pod);
/* To whom nodes are left. */
const char *model_backfill_name(const struct model *model);

/* ---- as time goes on ---- */

/* What is kept for too long is given back. */
void model_gangs_advance(struct model *model);
