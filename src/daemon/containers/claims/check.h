/*
 * Whether claims can stand beside each other. Pure; thread safe.
 *
 * Decided is by policy/memory/promise.h, at each allocation, beside all that is promised to other tenants. This is
 * what must hold of the outcome, counted afresh: of a store that was read, and in tests.
 */
#pragma once

#include <stddef.h>

#include "base/error.h"
#include "daemon/state/tenant.h"

/*
 * -EEXIST: two have one key, one id or name of their tenant, or one slot of a card; -ENOSPC: the quotas on a
 * card are more than its memory, or, unless may_overcommit, the guarantees more than all of its time.
 * The text names both sides. Of tenants that swap only the largest quota counts; those that wait have
 * none promised; each quota for itself fits the card. Cards that are NULL (parked) have no sums.
 */
int claims_check(const struct tenant_terms *const *list, size_t count, bool may_overcommit,
		 struct error *err);
