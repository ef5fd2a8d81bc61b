/*
 * Elastic limits in the daemon: who may borrow, and what is said of it. What is lent is decided in
 * policy/lease/rules/elastic.h, by the arbitration of each card. Main thread only.
 */
#pragma once

#include "daemon/state/tenant.h"
#include "daemon/util/json.h"

/*
 * Puts the tenant's choice, or the setting, into force on its devices. Only a limit that
 * follows from the guarantee is adapted: one that was asked for is the tenant's most already.
 */
void elastic_apply(struct tenant *tenant);

/* Whether the tenant's choice, or else the setting, is on. */
bool elastic_is_on(const struct tenant *tenant);

/* Logs limits that have changed much since the log last had them. Call about once a second. */
void elastic_log(struct tenant *tenant);

/* In requests and state files: true, false, or null for the daemon's setting. */
json_t *elastic_choice_to_json(enum elastic_choice choice);
/* Member "elastic". 1: *ret was written; 0: it is absent or null; -EINVAL with what it must be. */
int elastic_choice_from_json(const json_t *object, enum elastic_choice *ret, struct error *err);
