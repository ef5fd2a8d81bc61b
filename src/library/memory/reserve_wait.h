/*
 * Waits between a reservation that did not fit and its refusal.
 *
 *     while (ledger_reserve(...)) if (!reserve_wait(...)) refuse
 *
 * First, memory that a process measured (measured.h) may include memory that other tenants took. So if the daemon has not
 * checked such a measurement yet, the call waits for its next NVML query.
 *
 * Then, if the tenant waits for memory (allot run --on-full wait), the allocation may fit the quota but not the granted part of
 * the quota. If so, the call asks the daemon for more.
 *
 * A tenant that holds no memory yet waits in the daemon's queue. When its turn comes, it is granted all that it declared, on
 * all its devices at once. Until then its calls wait, for at most region_control.memory_wait_ns (if 0, without limit). A tenant
 * that holds memory is answered at once. So only a call that makes the first context waits long, and then no other thread of
 * the process holds memory that it could free instead.
 *
 * The program's signal handlers run during the wait, which then goes on. If the daemon is gone, a tenant that holds no memory
 * waits until a new daemon answers or memory_wait_ns is over. A tenant that holds memory is refused after a second. The waiting
 * thread holds only the lock that serializes requests.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* Zero this struct before an allocation's first reserve_wait(). */
struct reserve_wait {
	uint64_t since_ns;
	bool has_waited_for_nvml;
};

/* Call after `bytes` did not fit, without a lock that a free needs. True: try again; false: refused. Thread safe. */
bool reserve_wait(int index, uint64_t bytes, struct reserve_wait *wait);
