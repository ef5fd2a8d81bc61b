#include "library/bypass.h"

#include "library/loader/fast_path.h"
#include "library/state/guest.h"

__attribute__((visibility("default"))) void allot_bypass(bool is_on)
{
	uint32_t from = is_on ? GUEST_ACTIVE : GUEST_PLAIN, to = is_on ? GUEST_PLAIN : GUEST_ACTIVE;
	static bool was_active;

	if (is_on)
		was_active = was_active || guest_is_active();
	if (!was_active)
		return;
	atomic_compare_exchange_strong(&guest.mode, &from, to);
	/* What passed it would be counted still. */
	fast_path_shut(FAST_PATH_ALL);
}
