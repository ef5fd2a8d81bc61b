#include "library/launch/sync_point.h"

#include "library/launch/inflight/inflight.h"
#include "library/launch/inflight/inflight_settle.h"
#include "library/launch/report.h"
#include "library/launch/step.h"
#include "library/loader/fast_path.h"
#include "library/state/bell.h"
#include "library/state/process_state.h"

/* Each device's last sync point, whichever thread reached it. */
static struct {
	_Atomic uint64_t at_ns;
	_Atomic uint64_t waited_ns; /* region_slot_device.waited_ns at at_ns */
} last[REGION_MAX_DEVICES];

static __thread struct {
	int index;
	uint64_t launches;
} before;

static uint64_t waited_ns(int index)
{
	return atomic_load_explicit(&process_slot_device(index)->waited_ns, memory_order_relaxed);
}

static uint64_t elapsed(uint64_t from, uint64_t to)
{
	return to > from ? to - from : 0;
}

void sync_point_before(void)
{
	int index = process_is_active() ? process_current_index() : -1;

	if (index < 0)
		return;
	before.index = index;
	before.launches = inflight_launches(index);
}

void sync_point_launch(int index)
{
	if (!atomic_exchange(&inflight_devices[index].has_synced, false))
		return;
	uint64_t gate_ns = elapsed(atomic_load(&last[index].waited_ns), waited_ns(index));
	uint64_t gap_ns = elapsed(gate_ns, elapsed(atomic_load(&last[index].at_ns), sys_now_ns()));

	atomic_fetch_add_explicit(&atomic_load(&process_state.report)->bell[index].gap_ns, gap_ns,
				  memory_order_relaxed);
}

static void sync_point(int index, struct inflight_stream *only)
{
	if (!inflight_is_sync_point(index, only))
		return;
	struct region_bell *own = &atomic_load(&process_state.report)->bell[index];
	atomic_store(&last[index].waited_ns, waited_ns(index));
	uint64_t now_ns = sys_now_ns();
	atomic_store(&last[index].at_ns, now_ns);
	atomic_store(&inflight_devices[index].has_synced, true);
	fast_path_close(1U << index);
	step_end(index, now_ns);
	uint32_t wanted = atomic_load_explicit(&process_control_device(index)->sync_point_wanted,
					       memory_order_relaxed);
	/* The daemon must see the time of the whole step. So report the busy time before counting the sync point. */
	if (wanted && index == before.index)
		inflight_note_end(index, only, before.launches);
	if (wanted)
		report_end_of_work(index);
	atomic_fetch_add_explicit(&own->sync_points, 1, memory_order_release);
	if (wanted)
		bell_ring(index);
}

void sync_point_after_all(void)
{
	int index = process_is_active() ? process_current_index() : -1;

	if (index >= 0)
		sync_point(index, NULL);
}

void sync_point_after_stream(CUstream stream, enum stream_meaning streams)
{
	const struct work work = { .kind = WORK_IS_SYNC, .streams = streams, .stream = stream };
	struct inflight_stream *s = process_is_active() ? inflight_stream_of(&work) : NULL;

	if (s && s->device >= 0)
		sync_point(s->device, s);
}
