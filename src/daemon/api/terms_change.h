/*
 * Changes the terms of a live tenant (quotas, shares, priority and so on), for `allot set` or a pod's annotations. All changes
 * are checked first; then all are made and saved, or none. Main thread only.
 */
#pragma once

#include "base/error.h"
#include "daemon/state/tenant.h"
#include "policy/memory/promise.h"

struct terms_change {
	struct promise promise[REGION_MAX_DEVICES];
	/* changes[i]: terms_change_device() has set promise[i]; else promise[i] is the current promise */
	bool changes[REGION_MAX_DEVICES];
	enum on_full on_full; /* `swap` if the tenant has `swap` now, else `fail` or `wait` */
	enum elastic_choice elastic;
	enum on_violation on_violation;
	int priority;
};

struct terms_change terms_change_of(const struct tenant *tenant);

/*
 * Sets on_full in the change. Returns -EOPNOTSUPP for a change to or from `swap`, which can be chosen only when a tenant is
 * made. Call before terms_change_device(), which reads on_full: with `wait`, no memory is set aside for the quota.
 */
int terms_change_on_full(const struct tenant *tenant, struct terms_change *change,
			 enum on_full on_full, struct error *err);

/*
 * Sets the device's promise in the change: `request` applied to the terms `from` (NULL: the current ones). Errors are those of
 * promise_decide().
 */
int terms_change_device(struct tenant *tenant, struct terms_change *change, unsigned device,
			const struct promise *from, const struct promise_request *request,
			struct error *err);

/*
 * Makes the change. Returns -EBUSY if the tenant now holds more memory than a lowered quota, or another -errno if saving
 * failed. After an error nothing has changed.
 */
int terms_change_make(struct tenant *tenant, const struct terms_change *change, struct error *err);
