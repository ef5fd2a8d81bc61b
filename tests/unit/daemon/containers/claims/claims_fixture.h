/* Helpers that allocate and check claims in a test's daemon (daemon/fixture.h). */
#pragma once

#include "../../fixture.h"
#include "daemon/containers/claims/claims.h"

/* Returns a request for one GPU: its index, memory quota in MiB, percent of its time, and one slot (negative: none). */
struct claim_request claim_of(struct fixture *f, const char *key, unsigned card, uint64_t mib,
			      double cores_pct, int slot);
/* Allocates; fails the test if that is refused. */
struct claim *claim_made(struct fixture *f, const struct claim_request *request);
/* The allocation must be refused with this errno and a text with `word`, and leave nothing behind. */
void claim_refused(struct fixture *f, const struct claim_request *request, int code,
		   const char *word);
/*
 * Fails the test unless each claim has a tenant and a directory, or a reason why it is parked. Also checks that nothing else
 * has a claim's directory, and that the quotas and guarantees fit each GPU.
 */
void claims_must_hold(struct fixture *f);
/* Starts the daemon again, after it was killed or ended. */
void claims_restart(struct fixture *f);
/* Releases the claim; fails the test if that is refused. */
void claim_released(struct fixture *f, const char *key);
/* Returns a request for two GPUs with key "uid/c", in which each optional term is set. */
struct claim_request request_with_all_terms(struct fixture *f);
void assert_same_terms(const struct tenant_terms *a, const struct tenant_terms *b);
/* cmocka setup: fixture_setup() with a daemon that logs nothing. */
int claims_setup(void **state);
