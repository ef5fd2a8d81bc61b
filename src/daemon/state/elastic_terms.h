/*
 * An elastic tenant may borrow GPU time beyond its limit. This module decides which tenants are elastic, and logs their
 * limits. How much is lent is decided in each card's arbitration (policy/lease/rules/lend.h). Main thread only.
 */
#pragma once

#include "daemon/state/tenant.h"
#include "daemon/util/json.h"

/*
 * Turns borrowing on or off for each device, by elastic_is_on(). Only a limit derived from the guarantee may be exceeded; a
 * limit that the user set stays the maximum.
 */
void elastic_apply(struct tenant *tenant);

/* Returns whether the tenant may borrow: its own choice, or else the daemon's setting. */
bool elastic_is_on(const struct tenant *tenant);

/* Logs each limit that changed by five percentage points or more, or returned to the tenant's own. Call once a second. */
void elastic_log(struct tenant *tenant);

/* true, false, or null for the daemon's setting */
json_t *elastic_choice_to_json(enum elastic_choice choice);
/* Reads "elastic". Returns 1 if *ret was written, 0 if it is absent or null, -EINVAL for another type. */
int elastic_choice_from_json(const json_t *object, enum elastic_choice *ret, struct error *err);
