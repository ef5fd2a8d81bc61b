/*
 * What happens between a reservation that did not fit and its refusal.
 *
 *     while (ledger_reserve(...)) if (!admission_wait(...)) refuse
 *
 * First, if something was measured that the daemon has not seen yet, the call waits for the daemon's next NVML query. Bytes
 * that other tenants took on the GPU may have been counted as this tenant's (measured.h), and no call is refused for that.
 *
 * Then, if the tenant chose to wait for memory (allot run --on-full wait), an allocation that fits the quota but not what
 * the tenant was granted asks the daemon for more, and waits inside the call.
 *
 * A tenant that holds nothing yet is granted all that it declared, on all its devices at once, when its turn comes. It
 * waits until then without limit, or up to the tenant's own limit. A tenant that holds memory, and declared less than its
 * quota, is answered at once: it gets what is free, or nothing. So only a call that makes the first context waits long,
 * and then no other thread has memory yet that it could free.
 *
 * The program's signal handlers run during the wait, which then goes on. If the daemon is gone, it answers when it is back.
 * The waiting thread holds only the lock that serializes requests.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* The state of one allocation's wait. Zero it before the first admission_wait(). */
struct admission {
	uint64_t since_ns;
	bool has_looked;
};

/*
 * Call after `bytes` did not fit on device `index`. Returns true if the caller should try again. Returns false if
 * the reservation is refused: the tenant does not wait, the quota has no room for the bytes, no memory is
 * available, or the wait took too long. The caller must hold no lock that a free needs. Thread safe.
 */
bool admission_wait(int index, uint64_t bytes, struct admission *wait);
