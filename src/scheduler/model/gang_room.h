/*
 * Finds room for all pods of a gang (pod_gang.h), one after the other. Each pod takes the node that its policy ranks first,
 * among the nodes of its last filter call (or, without one, of the current call), and the cards that bind would assign.
 * Meanwhile the gang's reservations are not charged, except those of pods being bound. The asker is the pod of the current
 * filter or preempt call. Call from the model's thread only.
 */
#pragma once

#include "scheduler/model/model_gang.h"

/*
 * If at least `needed` pods find room, they get reservations, and the gang's other pods lose theirs. Otherwise nothing changes.
 * Returns how many found room. Out of memory counts as no room.
 */
size_t gang_room_reserve(struct model *model, struct gang *gang, const struct gang_rank *asker,
			 size_t needed);

/*
 * Whether the gang would have room if its candidate nodes had no bound pods below `priority` and, unless the asker is
 * opportunistic itself, no bound opportunistic pods. Changes nothing.
 */
bool gang_room_without(struct model *model, struct gang *gang, const struct gang_rank *asker,
		       size_t needed, int32_t priority);

/*
 * Marks the nodes of a backfill reservation for the gang (backfill_reservation.h). If running pods' deadlines make room within
 * RESERVATION_MOST_S, marks the nodes that have room earliest, and *ret_room_by_s is that time (s since 1970), else 0. False if
 * the gang would have no room even without the pods that are in no gang and do not outrank it.
 */
bool gang_room_reservation(struct model *model, struct gang *gang, const struct gang_rank *asker,
			   size_t needed, int64_t *ret_room_by_s);

/* Whether the gang's pod `member` still fits `node`, on which it has its reservation. */
bool gang_room_still_fits(struct model *model, const struct gang_rank *member,
			  const struct model_node *node);
/* Moves the reservation of `member` to the best node of its current filter call. False: no node fits, and nothing changes. */
bool gang_room_move(struct model *model, struct gang_rank *member);
