/*
 * Finds room for all pods of a gang, one after the other. Each takes the node that its policy ranks first, among those of its
 * last filter call (or else of the current call), and the cards that bind would assign. During the search, pods that wait or
 * whose room may be taken back are not charged. Call from the model's thread only.
 */
#pragma once

#include "scheduler/model/model_gang.h"

/*
 * Searches room for at least `needed` pods. On success each pod with room gets a reservation, the others none. Returns how many
 * found room; if too few, nothing changes. Without memory, acts as if there were no room.
 */
size_t gang_room_reserve(struct model *model, struct gang *gang, const struct gang_rank *asker,
			 size_t needed);

/*
 * Returns true if the gang would have room once all bound pods below `priority` on its candidate nodes ended and, unless the
 * asker is opportunistic itself, all opportunistic pods. Changes nothing.
 */
bool gang_room_without(struct model *model, struct gang *gang, const struct gang_rank *asker,
		       size_t needed, int32_t priority);

/*
 * Makes nodes the gang's backfill reservation where it would have room without lone pods that do not outrank it. False if there
 * are none.
 */
bool gang_room_reservation(struct model *model, struct gang *gang, const struct gang_rank *asker,
			   size_t needed);

/* Whether the member still fits its reserved node. */
bool gang_room_still_fits(struct model *model, const struct gang_rank *member,
			  const struct model_node *node);
/*
 * Moves the member's reservation to the best node of its current filter call. If none fits, returns false and changes nothing.
 */
bool gang_room_move(struct model *model, struct gang_rank *member);
