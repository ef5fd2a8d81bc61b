/*
 * Checks whether a set of claims is consistent, after reading the store and in tests. (policy/memory/promise.h decides whether
 * a new claim fits.) Pure; thread safe.
 */
#pragma once

#include <stddef.h>

#include "base/error.h"
#include "daemon/state/tenant.h"

/*
 * Returns -EEXIST if two claims share a key, tenant id, name or slot. Returns -ENOSPC if the quotas on a card exceed its
 * memory, or the guarantees exceed 100 % without may_overcommit. err names the claims or the card.
 *
 * The quota of a tenant with ON_FULL_WAIT does not count, since it is not promised. Of all tenants with ON_FULL_SWAP on a card
 * only the largest quota counts, since the others' memory can be moved to the host. Each single quota must fit its card.
 * Missing cards (NULL) are not checked.
 */
int claims_check(const struct tenant_terms *const *list, size_t count, bool may_overcommit,
		 struct error *err);
