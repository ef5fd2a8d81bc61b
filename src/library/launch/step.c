#include "library/launch/step.h"

#include "library/launch/inflight/inflight.h"
#include "library/launch/inflight/inflight_settle.h"
#include "library/state/process_state.h"

static struct {
	_Atomic uint64_t at_ns;    /* the end of the device's last step; 0 if there was none */
	_Atomic uint64_t launches; /* inflight_launches() at that time */
} last[REGION_MAX_DEVICES];

static void count_step(struct step_counts *c, uint64_t ns)
{
	atomic_fetch_add_explicit(&c->bucket[step_bucket_of(ns)], 1, memory_order_relaxed);
	atomic_fetch_add_explicit(&c->sum_ns, ns, memory_order_relaxed);
	atomic_fetch_add_explicit(&c->count, 1, memory_order_relaxed);
}

void step_end(int index, uint64_t now_ns)
{
	struct region_report *report = atomic_load(&process_state.report);
	uint64_t launches = inflight_launches(index);

	if (atomic_exchange(&last[index].launches, launches) == launches)
		return;
	uint64_t since_ns = atomic_exchange(&last[index].at_ns, now_ns);
	uint64_t pause_end_ns = atomic_load_explicit(&inflight_devices[index].pause_end_ns,
						     memory_order_relaxed);

	if (!since_ns || !report->has_steps)
		return;
	if (pause_end_ns > since_ns)
		since_ns = pause_end_ns;
	if (now_ns > since_ns)
		count_step(&report->steps[index], now_ns - since_ns);
}

void step_after_event(void)
{
	int index = process_is_active() ? process_current_index() : -1;

	if (index >= 0)
		step_end(index, sys_now_ns());
}
