/*
 * A change of a tenant's terms while it lives, as `allot set` and a pod's annotations ask for it: decided in all its parts,
 * then made at once, and written down; or not made at all. Main thread only.
 */
#pragma once

#include "base/error.h"
#include "daemon/state/tenant.h"
#include "policy/memory/promise.h"

struct terms_change {
	struct promise promise[REGION_MAX_DEVICES];
	bool changes[REGION_MAX_DEVICES]; /* promise[i] is another than now */
	enum on_full on_full;             /* fail or wait; swap stays what it is */
	enum elastic_choice elastic;
	enum on_violation on_violation;
	int priority;
};

/* Nothing is to change. */
struct terms_change terms_change_of(const struct tenant *tenant);

/*
 * -EOPNOTSUPP: to swap, or from it: how memory is had is decided when a container is made, as it can't be moved
 * afterwards. Decide on the devices after this: a quota that is waited for is promised to nobody.
 */
int terms_change_on_full(const struct tenant *tenant, struct terms_change *change,
			 enum on_full on_full, struct error *err);

/* The device's terms on top of `from` (NULL: those of now). Errors: promise_decide(). */
int terms_change_device(struct tenant *tenant, struct terms_change *change, unsigned device,
			const struct promise *from, const struct promise_request *request,
			struct error *err);

/*
 * -EBUSY: the tenant holds more than a lower quota by now; others as the state could not be written. Then all is
 * as before.
 */
int terms_change_make(struct tenant *tenant, const struct terms_change *change, struct error *err);
