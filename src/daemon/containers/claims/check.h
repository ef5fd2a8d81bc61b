/*
 * Checks whether a set of claims is consistent, after reading the store and in tests. (policy/memory/promise.h decides
 * whether a new claim fits.) Pure; thread safe.
 */
#pragma once

#include <stddef.h>

#include "base/error.h"
#include "daemon/state/tenant.h"

/*
 * Returns -EEXIST if two claims share a key, tenant id, name or slot; -ENOSPC if a card's quotas exceed its memory, or its
 * guarantees 100 % without may_overcommit. err names both sides. Quotas of waiting tenants do not count, since they are not
 * promised, and of swapping tenants only the largest does, but each quota must fit its card. The missing card (NULL) of a
 * parked claim is not checked.
 */
int claims_check(const struct tenant_terms *const *list, size_t count, bool may_overcommit,
		 struct error *err);
