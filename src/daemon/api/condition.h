/*
 * What a tenant is doing now, in one word: the `state` of `allot ps` and of metrics. Main thread only.
 */
#pragma once

#include "daemon/arbitrate/arbitration.h"

struct tenant;

enum tenant_condition {
	TENANT_PAUSED,
	TENANT_QUEUED,    /* an allocation waits for memory */
	TENANT_LEAVING,   /* asked to leave the card, and not all of its swappable memory is off */
	TENANT_SWAPPED,   /* all of its swappable memory is off the card */
	TENANT_RETURNING, /* its memory comes back */
	TENANT_STARTING,  /* no process has registered yet */
	TENANT_RUNNING,   /* has work in flight */
	TENANT_WAITING,   /* held at the gate */
	TENANT_IDLE,
	TENANT_ENDING, /* removed, and processes of it live */
	TENANT_CONDITIONS
};

/* `figures`: of each of its devices, as of now. */
enum tenant_condition tenant_condition(const struct tenant *tenant,
				       const struct lessee_figures *figures);
/* "paused", "queued", ...: stable, for people and programs. */
const char *tenant_condition_name(enum tenant_condition condition);
