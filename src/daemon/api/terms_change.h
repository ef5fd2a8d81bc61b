/*
 * A change of a live tenant's terms, requested by `allot set` or a pod's annotations. First all parts of the change are checked;
 * then the whole change is made and saved, or nothing changes. Main thread only.
 */
#pragma once

#include "base/error.h"
#include "daemon/state/tenant.h"
#include "policy/memory/promise.h"

struct terms_change {
	struct promise promise[REGION_MAX_DEVICES];
	bool changes[REGION_MAX_DEVICES]; /* promise[i] differs from the current one */
	enum on_full on_full;             /* fail or wait; swap cannot change */
	enum elastic_choice elastic;
	enum on_violation on_violation;
	int priority;
};

/* Returns a change that changes nothing. */
struct terms_change terms_change_of(const struct tenant *tenant);

/*
 * Adds a change of on_full. Returns -EOPNOTSUPP for a change to or from swap: when a container is made, it is decided whether
 * its memory can be moved. Call this before terms_change_device(), whose result depends on it: with `wait` the quota is not
 * promised.
 */
int terms_change_on_full(const struct tenant *tenant, struct terms_change *change,
			 enum on_full on_full, struct error *err);

/*
 * Adds a change of a device's terms: `request` applied to the terms `from` (NULL: to the current terms). Errors: those of
 * promise_decide().
 */
int terms_change_device(struct tenant *tenant, struct terms_change *change, unsigned device,
			const struct promise *from, const struct promise_request *request,
			struct error *err);

/*
 * Makes the change. Returns -EBUSY if the tenant now holds more memory than a lowered quota; other errors if the state could
 * not be saved. After an error nothing has changed.
 */
int terms_change_make(struct tenant *tenant, const struct terms_change *change, struct error *err);
