/*
 * Reads the ring (buffer of events; abi/shm/trace_ring.h) of one traced process while the process writes to it. Counts the
 * events that the reader was too slow for. Nothing in the ring is trusted: it may change at any time. Not thread safe.
 */
#pragma once

#include <stdbool.h>

#include "abi/shm/trace_ring.h"
#include "base/error.h"

/*
 * Calls of ring_reader_drain() stop at the same event for at most this long; after that they pass it. An incomplete event then
 * counts as lost, because its thread was probably killed. An event that ended after `until_ticks` is then delivered, because
 * its end time is wrong, or the clock was set back.
 */
#define RING_READER_PATIENCE_NS UINT64_C(200000000)

struct ring_reader {
	const struct trace_ring *ring;
	uint64_t done; /* number of events read or lost */
	uint64_t lost;
	/* when the next event was first found incomplete or too new; 0 if it is neither */
	uint64_t stalled_ns;
	uint32_t names_done;
};

/* Returns -EPROTO if the ring has another version or `fd` is no sealed memory file. The caller keeps `fd`. */
int ring_reader_open(int fd, struct ring_reader *ret, struct error *err);
void ring_reader_close(struct ring_reader *reader);

typedef void ring_reader_event(void *data, const struct trace_event *event);

/*
 * Delivers new events in order and returns their number. Stops before an event that is incomplete or ended after `until_ticks`,
 * until a later call. With `is_last`, delivers the late ones and skips the incomplete. Invalid events count as lost.
 */
size_t ring_reader_drain(struct ring_reader *reader, uint64_t until_ticks, uint64_t now_ns,
			 bool is_last, ring_reader_event *event, void *data);

/* Reads the next name; false if there is none now. Call before ring_reader_drain(), because events refer to names. */
bool ring_reader_name(struct ring_reader *reader, struct trace_name *ret);
