/*
 * Checks whether a set of claims is consistent. Pure; thread safe.
 *
 * When a claim is made, policy/memory/promise.h decides whether it fits beside all other claims. This file checks claims in
 * another way, after they were read from the store, and in tests.
 */
#pragma once

#include <stddef.h>

#include "base/error.h"
#include "daemon/state/tenant.h"

/*
 * Returns -EEXIST if two claims have the same key, tenant id or name, or a slot in common. Returns -ENOSPC if a card's quotas
 * exceed its memory, or its guarantees exceed all of its time; the latter is allowed with may_overcommit. The text names both
 * sides. Of the quotas of swapping tenants only the largest counts. Those of waiting tenants do not count, since they are not
 * promised. Each quota alone must fit its card. A parked claim's card that is missing (NULL) is not checked.
 */
int claims_check(const struct tenant_terms *const *list, size_t count, bool may_overcommit,
		 struct error *err);
