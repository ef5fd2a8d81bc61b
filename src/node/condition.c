#include "node/condition.h"

#include "node/swap_turns.h"
#include "node/tenant.h"

static const char *const names[TENANT_CONDITIONS] = {
	[TENANT_PAUSED] = "paused",     [TENANT_QUEUED] = "queued",   [TENANT_SWAPPED] = "swapped",
	[TENANT_STARTING] = "starting", [TENANT_RUNNING] = "running", [TENANT_WAITING] = "waiting",
	[TENANT_IDLE] = "idle",         [TENANT_ENDING] = "ending",
};

const char *tenant_condition_name(enum tenant_condition condition)
{
	return names[condition];
}

enum tenant_condition tenant_condition(const struct tenant *t, const struct lessee_figures *figures)
{
	bool waiting = false;
	if (t->terms.is_retired)
		return TENANT_ENDING;
	if (t->terms.paused)
		return t->terms.swapped_out ? TENANT_SWAPPED : TENANT_PAUSED;
	if (t->admission.state == ADMISSION_QUEUED || t->wants_room)
		return TENANT_QUEUED;
	if (!t->started)
		return TENANT_STARTING;
	if (swap_turns_is_away(t))
		return TENANT_SWAPPED;
	for (unsigned i = 0; i < t->terms.device_count; i++) {
		if (figures[i].busy)
			return TENANT_RUNNING;
		waiting |= figures[i].waiting;
	}
	return waiting ? TENANT_WAITING : TENANT_IDLE;
}
