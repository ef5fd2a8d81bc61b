/* A tenant's condition in one word: the `state` of `allot ps` and of metrics. Main thread only. */
#pragma once

#include "daemon/arbitrate/arbitration.h"

struct tenant;

enum tenant_condition {
	TENANT_PAUSED,
	TENANT_QUEUED,    /* an allocation waits for memory */
	TENANT_LEAVING,   /* some of its swappable memory has still to leave the card */
	TENANT_SWAPPED,   /* all of its swappable memory is off the card */
	TENANT_RETURNING, /* its memory is being copied back */
	TENANT_STARTING,  /* no process has registered yet */
	TENANT_RUNNING,   /* has work in flight */
	TENANT_WAITING,   /* its threads wait for a lease before they launch more work */
	TENANT_IDLE,
	TENANT_ENDING, /* removed, but some of its processes still live */
	TENANT_CONDITIONS
};

/* figures[i] describes the tenant's device i. */
enum tenant_condition tenant_condition(const struct tenant *tenant,
				       const struct lessee_figures *figures);
/* Returns "paused", "queued" and so on. Stable: programs may rely on the words. */
const char *tenant_condition_name(enum tenant_condition condition);
/* Returns "stop", "closing" and so on. */
const char *lease_state_name(enum lease_state state);
