/*
 * What comes between a reservation that did not fit and its refusal.
 *
 *     while (ledger_reserve(...)) if (!admission_wait(...)) refuse
 *
 * First the daemon's look, where something was measured that it has not seen: what others did to the card
 * meanwhile may have been taken for this tenant's (measured.h), so nobody is refused for that.
 *
 * Then waiting for memory, where the tenant chose to (allot run --on-full wait): an allocation that its
 * quota allows, but not what it was granted, asks the daemon for more and waits in the call.
 *
 * A tenant that holds nothing yet is granted all that it reserved, on all its devices at once, when its
 * turn comes; it waits until then, however long, or up to the tenant's own limit. One that holds memory,
 * and reserved less than its quota, is answered at once: it gets what is free, or no more. So a
 * long wait is only in a call that makes the first context: there is nothing yet that another thread
 * would free.
 *
 * Signal handlers of the program run meanwhile, and the wait goes on. A daemon that is gone answers as
 * soon as it is back. Nothing is held during the wait but a lock of those that ask.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* One call's wait: zero before the first. */
struct admission {
	uint64_t since_ns;
	bool has_looked;
};

/*
 * After `bytes` did not fit on device `index`: true when they are to be tried again; false when they are
 * refused: the tenant does not wait, the quota has no room for them, there is none to be had, or
 * it took too long. The caller holds no lock that a free needs. Thread safe.
 */
bool admission_wait(int index, uint64_t bytes, struct admission *wait);

/* In a forked child. */
void admission_reset(void);
