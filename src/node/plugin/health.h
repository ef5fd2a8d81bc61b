/*
 * Whether a card may be given to pods, from whether it answers and what the driver says of it. One that does not
 * answer is unhealthy at once; it is healthy again after a few answers in a row, so that a card which comes and goes is
 * not offered. An error of the card itself (Xid) makes it unhealthy until it has been away, as when it is reset,
 * or until the daemon starts anew. Pure.
 */
#ifndef ALLOT_NODE_PLUGIN_HEALTH_H
#define ALLOT_NODE_PLUGIN_HEALTH_H

#include <stdbool.h>
#include <stdint.h>

#define HEALTH_ANSWERS 3 /* in a row, until it is healthy again */
#define HEALTH_SILENCE_NS \
	UINT64_C(4000000000) /* a driver that is silent for so long does not answer */

struct health {
	bool is_healthy;
	bool is_condemned; /* by an error of its own */
	unsigned answers;  /* in a row, while it is not healthy */
};

static inline struct health health_new(void)
{
	return (struct health){ .is_healthy = true };
}

/* True when it changed. */
static inline bool health_note(struct health *health, bool has_answered)
{
	bool before = health->is_healthy;
	health->answers = has_answered ? health->answers + 1 : 0;
	if (!has_answered)
		health->is_healthy = health->is_condemned = false;
	else if (health->answers >= HEALTH_ANSWERS && !health->is_condemned)
		health->is_healthy = true;
	return health->is_healthy != before;
}

/* The card has an error of its own. True when that changed something. */
static inline bool health_condemn(struct health *health)
{
	bool before = health->is_healthy;
	health->is_condemned = true;
	health->is_healthy = false;
	return before;
}

#endif
