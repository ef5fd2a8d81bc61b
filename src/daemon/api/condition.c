#include "daemon/api/condition.h"

#include "daemon/memory/swap/swap_orders.h"
#include "daemon/memory/swap/tenant_checkpoint.h"
#include "daemon/state/tenant.h"

static const char *const names[TENANT_CONDITIONS] = {
	[TENANT_PAUSED] = "paused",       [TENANT_QUEUED] = "queued",
	[TENANT_LEAVING] = "leaving",     [TENANT_SWAPPED] = "swapped",
	[TENANT_RETURNING] = "returning", [TENANT_STARTING] = "starting",
	[TENANT_RUNNING] = "running",     [TENANT_WAITING] = "waiting",
	[TENANT_IDLE] = "idle",           [TENANT_ENDING] = "ending",
};

const char *tenant_condition_name(enum tenant_condition condition)
{
	return names[condition];
}

const char *lease_state_name(enum lease_state state)
{
	static const char *const states[] = { "stop", "closing", "go", "free", "paced" };
	return states[state];
}

/* Returns `otherwise` if all memory is on the cards and stays there, or if a move failed half way (PLACE_STUCK). */
static enum tenant_condition moved_or(const struct tenant *t, enum tenant_condition otherwise)
{
	switch (swap_way_of(&t->terms) == SWAP_BY_LIBRARY ? swap_place(t)
							  : tenant_checkpoint_place(t)) {
	case PLACE_LEAVING: return TENANT_LEAVING;
	case PLACE_OUT: return TENANT_SWAPPED;
	case PLACE_RETURNING: return TENANT_RETURNING;
	default: return otherwise;
	}
}

enum tenant_condition tenant_condition(const struct tenant *t, const struct lessee_figures *figures)
{
	bool waiting = false;
	if (t->terms.is_retired)
		return TENANT_ENDING;
	if (t->terms.paused)
		return moved_or(t, TENANT_PAUSED);
	if (t->memory_wait.state == MEMORY_WAIT_QUEUED || t->wants_room)
		return TENANT_QUEUED;
	if (!t->started)
		return TENANT_STARTING;
	enum tenant_condition moved = moved_or(t, TENANT_IDLE);
	if (moved != TENANT_IDLE)
		return moved;
	for (unsigned i = 0; i < t->terms.device_count; i++) {
		if (figures[i].busy)
			return TENANT_RUNNING;
		waiting |= figures[i].waiting;
	}
	return waiting ? TENANT_WAITING : TENANT_IDLE;
}
