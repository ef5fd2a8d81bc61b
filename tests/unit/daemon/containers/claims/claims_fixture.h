/* Helpers that allocate and check claims in a test's daemon (daemon/fixture.h). */
#pragma once

#include "../../fixture.h"
#include "daemon/containers/claims/claims.h"

/* Returns a request for one card: memory quota in MiB, percent of the card's time, one slot (negative: none). */
struct claim_request claim_of(struct fixture *f, const char *key, unsigned card, uint64_t mib,
			      double cores_pct, int slot);
/* Allocates; fails the test if that is refused. */
struct claim *claim_made(struct fixture *f, const struct claim_request *request);
/* The allocation must be refused with this errno and a text with `word`, and leave nothing behind. */
void claim_refused(struct fixture *f, const struct claim_request *request, int code,
		   const char *word);
/*
 * Fails the test unless each claim has a tenant and a directory, or a reason why it is parked. Also checks that nothing else
 * has a claim's directory, and that the quotas and guarantees fit each card.
 */
void claims_must_hold(struct fixture *f);
/* Starts the daemon again, after it was killed or ended. */
void claims_restart(struct fixture *f);
void claim_released(struct fixture *f, const char *key);
void assert_same_terms(const struct tenant_terms *a, const struct tenant_terms *b);
struct claim_request full_request(struct fixture *f);
/* Each test begins with the daemon's log ignored. */
int claims_setup(void **state);
