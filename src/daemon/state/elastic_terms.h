/*
 * Elastic limits in the daemon: which tenants may borrow GPU time beyond their limit, and what is
 * logged. policy/lease/rules/lend.h decides how much is lent, in each card's arbitration. Main
 * thread only.
 */
#pragma once

#include "daemon/state/tenant.h"
#include "daemon/util/json.h"

/*
 * Turns borrowing on or off for each of the tenant's devices, by elastic_is_on(). Only a limit that
 * was derived from the guarantee is ever raised: a limit that the user asked for is already the
 * tenant's maximum.
 */
void elastic_apply(struct tenant *tenant);

/* Whether the tenant may borrow: its own choice, or else the daemon's setting. */
bool elastic_is_on(const struct tenant *tenant);

/*
 * Logs the tenant's limit on each device if it has changed much since it was last logged. Call
 * about once a second.
 */
void elastic_log(struct tenant *tenant);

/*
 * Converts the choice to the JSON of requests and state files: true, false, or null for the
 * daemon's setting.
 */
json_t *elastic_choice_to_json(enum elastic_choice choice);
/*
 * Reads member "elastic". Returns 1 if *ret was written, 0 if the member is absent or null, -EINVAL
 * if it has another type.
 */
int elastic_choice_from_json(const json_t *object, enum elastic_choice *ret, struct error *err);
