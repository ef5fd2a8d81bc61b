/*
 * Whether a set of claims is consistent. Pure; thread safe.
 *
 * policy/memory/promise.h decides each allocation, against all other promises. This checks the
 * result independently: for a store that was read, and in tests.
 */
#pragma once

#include <stddef.h>

#include "base/error.h"
#include "daemon/state/tenant.h"

/*
 * Returns -EEXIST if two claims have the same key, tenant id or name, or a slot in common. Returns
 * -ENOSPC if a card's quotas exceed its memory or, unless may_overcommit, its guarantees exceed all
 * of its time. The text names both sides. Only the largest quota of swapping tenants counts, and
 * waiting tenants have no promised quota. Each quota alone must fit its card. Cards that are NULL
 * (parked) are not summed.
 */
int claims_check(const struct tenant_terms *const *list, size_t count, bool may_overcommit,
		 struct error *err);
