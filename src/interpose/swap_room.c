#include "interpose/swap_room.h"

#include "interpose/guest.h"
#include "interpose/ledger.h"

#define PATIENCE_NS (60 * NS_PER_S) /* until it fails */
#define NAP_NS (10 * NS_PER_MS)

static _Atomic uint64_t wanted_bytes;

bool swap_is_beyond_bound(void)
{
	uint64_t bound = atomic_load(&atomic_load(&guest.control)->swap_bound_bytes);

	return bound != UINT64_MAX && !atomic_load(&guest.daemon_lost) && ledger_used(0) > bound;
}

void swap_want(int64_t bytes)
{
	atomic_fetch_add(&wanted_bytes, (uint64_t)bytes);
	atomic_store(&atomic_load(&guest.slot)->swap_wanted_bytes, atomic_load(&wanted_bytes));
}

uint64_t swap_wanted(void)
{
	return atomic_load(&wanted_bytes);
}

bool swap_wait_for_room(uint64_t begin_ns)
{
	struct region_slot_device *d = guest_slot_device(0);

	if (!guest_is_active() || atomic_load(&guest.daemon_lost) ||
	    sys_now_ns() - begin_ns > PATIENCE_NS)
		return false;
	atomic_fetch_add(&d->waiting, 1);
	sys_sleep_ns(NAP_NS);
	atomic_fetch_sub(&d->waiting, 1);
	return true;
}

void swap_room_reset(void)
{
	atomic_store(&wanted_bytes, 0);
}
