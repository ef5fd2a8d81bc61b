/*
 * Reads the ring of one traced process (abi/shm/trace_ring.h) while the process writes to it, and counts the events that the
 * reader was too slow for. Nothing in the ring is trusted: it may change at any time. Not thread safe.
 */
#pragma once

#include <stdbool.h>

#include "abi/shm/trace_ring.h"
#include "base/error.h"

/*
 * Time limits of ring_reader_drain(). An event that is not complete after this time counts as lost, because its thread was
 * probably killed while writing it. An event that still ends after `until_ticks` then is delivered: its process reported a wrong
 * time, or the clock was set back.
 */
#define RING_READER_PATIENCE_NS UINT64_C(200000000)

struct ring_reader {
	const struct trace_ring *ring;
	uint64_t done; /* number of events read or lost */
	uint64_t lost; /* number of events lost */
	uint64_t stalled_ns; /* when the next event was first seen incomplete or too new; 0 if it was not */
	uint32_t names_done;
};

/*
 * Maps a ring. Returns -EPROTO if the ring is of another version, or not a sealed memory file. The caller keeps the descriptor.
 */
int ring_reader_open(int fd, struct ring_reader *ret, struct error *err);
void ring_reader_close(struct ring_reader *reader);

typedef void ring_reader_event(void *data, const struct trace_event *event);

/*
 * Delivers the events that were recorded since the last call, in order. Stops before the first event that is incomplete or
 * ended after `until_ticks`, so that a later call delivers it. With `is_last`, does not stop: it delivers events that ended later
 * too, and leaves out incomplete ones without counting them as lost. Invalid events are left out and counted as lost. Returns
 * the number of events delivered.
 */
size_t ring_reader_drain(struct ring_reader *reader, uint64_t until_ticks, uint64_t now_ns,
			 bool is_last, ring_reader_event *event, void *data);

/* Reads the next recorded name, with its text terminated. Call before events are read. Returns false if there is none now. */
bool ring_reader_name(struct ring_reader *reader, struct trace_name *ret);
