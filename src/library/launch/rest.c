#include "library/launch/rest.h"

#include "library/launch/flight/flight.h"
#include "library/state/bell.h"
#include "library/state/guest.h"

static void rest(int index, struct flight_stream *only)
{
	if (!flight_rests(index, only))
		return;
	struct region_bell *own = &atomic_load(&guest.report)->bell[index];
	atomic_fetch_add_explicit(&own->rests, 1, memory_order_relaxed);
	if (atomic_load_explicit(&guest_control_device(index)->rest_wanted, memory_order_relaxed))
		bell_ring(index);
}

void rest_after_all(void)
{
	int index = guest_is_active() ? guest_current_index() : -1;

	if (index >= 0)
		rest(index, NULL);
}

void rest_after_stream(CUstream stream, enum stream_meaning streams)
{
	const struct work work = { .kind = WORK_IS_SYNC, .streams = streams, .stream = stream };
	struct flight_stream *s = guest_is_active() ? flight_stream_of(&work) : NULL;

	if (s && s->device >= 0)
		rest(s->device, s);
}
