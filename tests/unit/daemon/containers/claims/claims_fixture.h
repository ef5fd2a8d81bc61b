/* Claims in a test's daemon (../fixture.h): allocated, counted, checked for their invariants. */
#pragma once

#include "../../fixture.h"
#include "daemon/containers/claims/claims.h"

/* A request for one card: quota in MiB, percent of its time, one slot (negative: none). */
struct claim_request claim_of(struct fixture *f, const char *key, unsigned card, uint64_t mib,
			      double cores_pct, int slot);
/* Allocates; fails the test if that is refused. */
struct claim *claim_made(struct fixture *f, const struct claim_request *request);
/* The allocation must be refused with this errno and a text with `word`, and leave nothing behind. */
void claim_refused(struct fixture *f, const struct claim_request *request, int code,
		   const char *word);
/* Every claim has its tenant and directory, and nothing else does; no card is promised too often. */
void claims_must_hold(struct fixture *f);
/* Starts the daemon again, after it was killed or ended. */
void claims_restart(struct fixture *f);
