/* Claims in a test's daemon (../fixture.h): asked for, counted, held against what must hold of them. */
#pragma once

#include "../../fixture.h"
#include "daemon/containers/claims/claims.h"

/* A request of one card: quota in MiB, percent of its time, one slot (negative: none). */
struct claim_request claim_of(struct fixture *f, const char *key, unsigned card, uint64_t mib,
			      double cores_pct, int slot);
/* Allocates what must be allocated. */
struct claim *claim_made(struct fixture *f, const struct claim_request *request);
/* What must be refused, with that errno and a text that holds `word`; nothing is left of it. */
void claim_refused(struct fixture *f, const struct claim_request *request, int code,
		   const char *word);
/* Every claim has its tenant and directory, and nothing else does; no card is promised too often. */
void claims_must_hold(struct fixture *f);
/* The daemon again, as one that was killed or ended. */
void claims_restart(struct fixture *f);
