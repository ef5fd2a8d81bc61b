/*
 * Finds room for all pods of a gang (pod_gang.h), one after the other. Each pod takes the node that its policy ranks first,
 * among the nodes of its last filter call (or, without one, of the current call), and the cards that bind would assign. During
 * the search, the gang's reservations are not charged, except those of pods being bound. The asker is the pod of the current
 * filter or preempt call. Call from the model's thread only.
 */
#pragma once

#include "scheduler/model/model_gang.h"

/*
 * Finds room for at least `needed` pods. On success each pod with room gets a reservation, and the gang's other pods lose
 * theirs. Returns how many found room; if fewer than `needed`, nothing changes. Out of memory counts as no room.
 */
size_t gang_room_reserve(struct model *model, struct gang *gang, const struct gang_rank *asker,
			 size_t needed);

/*
 * Returns true if the gang would have room after evictions on its candidate nodes. These would evict all bound pods below
 * `priority`. Unless the asker itself is opportunistic, they would also evict all bound opportunistic pods. Changes nothing.
 */
bool gang_room_without(struct model *model, struct gang *gang, const struct gang_rank *asker,
		       size_t needed, int32_t priority);

/*
 * Marks the nodes of a backfill reservation for the gang (backfill_reservation.h). If the deadlines of running pods say that the
 * gang has room within RESERVATION_MOST_S, these are the nodes with room first, and *ret_room_by_s is that time (s since 1970).
 * Otherwise it is 0. Returns false if the gang would have no room even without the pods that are in no gang and do not outrank
 * it.
 */
bool gang_room_reservation(struct model *model, struct gang *gang, const struct gang_rank *asker,
			   size_t needed, int64_t *ret_room_by_s);

/* Whether the gang's pod `member` still fits `node`, on which it has its reservation. */
bool gang_room_still_fits(struct model *model, const struct gang_rank *member,
			  const struct model_node *node);
/*
 * Moves the reservation of the gang's pod `member` to the best node of its current filter call. If none fits, returns false and
 * changes nothing.
 */
bool gang_room_move(struct model *model, struct gang_rank *member);
