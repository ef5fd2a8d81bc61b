/*
 * Finds room for all pods of a gang together. The pods are placed one after the other. Each pod takes the node that its
 * placement policy ranks first, and on that node the cards that bind would assign. The candidates are the nodes of the pod's
 * last filter call; a pod without a filter call uses the nodes of the current call. During the search, the charges of
 * pods that wait or whose room may be taken back are removed. Call from the model's thread only.
 */
#pragma once

#include "scheduler/model/model_gang.h"

/*
 * Searches room for at least `needed` pods of the gang. On success, every pod that found room gets a reservation, which
 * replaces its earlier one; the other pods get none. Returns the number of pods that found room. If the number is less than
 * `needed`, nothing is changed. If memory runs out, the function acts as if there were no room.
 */
size_t gang_room_take(struct model *model, struct gang *gang, const struct gang_rank *asker,
		      size_t needed);

/*
 * Returns true if the gang would have room once all bound pods below `priority` on its candidate nodes ended and, unless the
 * asker is opportunistic itself, all opportunistic pods. Changes nothing.
 */
bool gang_room_without(struct model *model, struct gang *gang, const struct gang_rank *asker,
		       size_t needed, int32_t priority);

/*
 * Searches nodes where the gang would have room if all lone pods that do not outrank the gang had ended, and makes these nodes
 * the gang's backfill reservation. Returns false if there are no such nodes.
 */
bool gang_room_reservation(struct model *model, struct gang *gang, const struct gang_rank *asker,
			   size_t needed);

/* Returns true if the member still fits the node on which room is reserved for the member. */
bool gang_room_suits(struct model *model, const struct gang_rank *member,
		     const struct model_node *node);
/* Moves the member's reservation to the best node of its current filter call. If none fits, returns false, changes nothing. */
bool gang_room_move(struct model *model, struct gang_rank *member);
