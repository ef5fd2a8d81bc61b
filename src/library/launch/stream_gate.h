/*
 * A gate in a stream: the GPU waits for the lease, and the thread goes on.
 *
 * A thread that is held at the gate (gate.h) loses its lead over the GPU, and a program whose speed is that of its launches
 * runs with an idle GPU until it has one again. So a launch that comes while another tenant has the lease may be handed to
 * the driver at once, behind a wait for a number in the process's memory (cuStreamWaitValue32). When the lease comes, the
 * number is written, and what has gathered in the stream runs at the GPU's speed. The work begins within 30 us of the
 * write (H200, driver 580). What a waiting context costs its neighbours: docs/decisions/stream-gate.md.
 *
 * Only launches whose length is known are let through: the first one of a kernel loads its code, which waits for the GPU. A
 * copy that does so as well waits at the gate. At most so much work as the daemon allows is behind the gates
 * (region_control_device.queue_ns), of MOST launches: a driver has room for about 1,000, which events take up too.
 *
 * Work behind a gate counts as demand (the slot's `waiting`), not as work in flight. All gates open at once: with the lease,
 * when the daemon is lost or a new one comes, before it parks the process, before a context ends, and at exit. They are
 * opened by a thread that never calls the driver, and no lock that opening needs is held in a call of the driver: other
 * threads may be in one that waits for the work behind the gates, with the driver's own locks held (cuMemFree, cuMemcpyDtoH,
 * cuModuleLoadData: H100, driver 580). Queries of events are answered meanwhile; events are not recorded.
 *
 * One device of a process has gates at a time, and streams of one context. Thread safe.
 */
#ifndef ALLOT_LIBRARY_LAUNCH_STREAM_GATE_H
#define ALLOT_LIBRARY_LAUNCH_STREAM_GATE_H

#include "library/launch/flight/flight.h"
#include "library/launch/flight/work.h"

SYS_DATA _Atomic uint32_t stream_gate_closed; /* index of the device that has closed gates, + 1; 0: none */

/* One launch on its way behind a gate. */
struct stream_gate_pass {
	uint32_t number; /* of the gate; 0: behind none */
	uint64_t ns;     /* what it counts for there */
	struct region_slot_device *slot;
};

/*
 * Another tenant, or process, has the lease: may `work` be handed to the driver, and wait in its stream? The caller
 * launches it then, whatever the lease becomes, and calls stream_gate_passed(). Writes *pass in any case.
 */
bool stream_gate_let_through(struct flight_stream *stream, const struct work *work, int index,
			     struct stream_gate_pass *pass);

/* After the launch. A thread that was on its way when the gates opened counts in `launching` until here. */
void stream_gate_passed(int index, const struct stream_gate_pass *pass, bool is_launched);

/* What has gathered runs. */
void stream_gate_open_all(void);

/* The lease of that device is there. */
static inline void stream_gate_open(int index)
{
	if (unlikely(atomic_load(&stream_gate_closed) == (uint32_t)index + 1))
		stream_gate_open_all();
}

/* A context ends: opens the gates, and has the GPU told of them anew. Before the real call, and after it. */
void stream_gate_drop_contexts(void);

/* At exit: opens all gates, for good. */
void stream_gate_leave(void);

/* In a forked child. */
void stream_gate_reset(void);

#endif
