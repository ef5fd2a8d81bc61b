#include "library/bypass.h"

#include "library/loader/fast_path.h"
#include "library/state/process_state.h"

__attribute__((visibility("default"))) void allot_bypass(bool is_on)
{
	uint32_t from = is_on ? PROCESS_ACTIVE : PROCESS_PLAIN,
		 to = is_on ? PROCESS_PLAIN : PROCESS_ACTIVE;
	static bool was_active;

	if (is_on)
		was_active = was_active || process_is_active();
	if (!was_active)
		return;
	atomic_compare_exchange_strong(&process_state.mode, &from, to);
	/* Launches on the fast path would still be counted. */
	fast_path_close(FAST_PATH_ALL);
}
