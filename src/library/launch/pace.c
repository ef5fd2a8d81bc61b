#include "library/launch/pace.h"

void pace_spend(int index, uint64_t ns, bool is_untried)
{
	struct region_report *report = atomic_load_explicit(&process_state.report,
							    memory_order_acquire);

	/* The tenant may no longer run at the same time as others, and then pays nothing. */
	if (!pace_most_x100(index))
		return;
	if (ns > PACE_MOST)
		ns = PACE_MOST;
	atomic_fetch_add(&report->spent[index].tokens, ns ? ns : 1);
	atomic_fetch_add_explicit(&report->spent[index].work_ns, ns, memory_order_relaxed);
	if (unlikely(is_untried))
		atomic_fetch_add_explicit(&report->spent[index].untried_ns, ns,
					  memory_order_relaxed);
}
