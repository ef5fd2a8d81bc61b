/*
 * Where the pods of a gang find room together: each, in turn, takes the node that its policy likes best of those that it was
 * asked about the last time (or, before it was ever asked, that are asked about now), and of its cards what it would get in
 * bind. Those who wait, or whose room may be taken back, are lifted meanwhile. The model's thread.
 */
#pragma once

#include "scheduler/model/model_gang.h"

/*
 * Room for `needed` of the gang or more: it is reserved for all that found some, in place of what they had, and nothing is for
 * the others. Returns how many did; where those are too few, everything is as it was. No memory is no room.
 */
size_t gang_room_take(struct model *model, struct gang *gang, const struct gang_rank *asker,
		      size_t needed);

/* Would there be room, if all pods of lower priority that are bound to the nodes that are asked about had ended? Nothing is changed. */
bool gang_room_without(struct model *model, struct gang *gang, const struct gang_rank *asker,
		       size_t needed, int32_t priority);

/* Makes those nodes its backfill reservation on which it would have room, if no lone pod that does not outrank it were there. false: nowhere. */
bool gang_room_reservation(struct model *model, struct gang *gang, const struct gang_rank *asker,
			   size_t needed);

/* Does a member still fit where its room is? */
bool gang_room_suits(struct model *model, const struct gang_rank *member,
		     const struct model_node *node);
/* Its room goes to the best of the nodes that it is asked about now. false: there is none, and it stays. */
bool gang_room_move(struct model *model, struct gang_rank *member);
