/*
 * Reads the ring of one traced process (abi/shm/trace.h) while it is written, and counts what it was too slow for.
 * Nothing in the ring is believed: it may change under the reader in any way. One thread.
 */
#pragma once

#include <stdbool.h>

#include "abi/shm/trace.h"
#include "base/error.h"

/*
 * An event that is not whole after so long is taken for lost: its thread was killed at it. One that is still newer than
 * `until_ticks` is handed on: its process lies, or the clock was set back.
 */
#define RING_READER_PATIENCE_NS UINT64_C(200000000)

struct ring_reader {
	const struct trace_ring *ring;
	uint64_t done;       /* events, read or lost */
	uint64_t lost;       /* of these */
	uint64_t stalled_ns; /* when the next was first seen unfinished or too new; 0: it was not */
	uint32_t names_done;
};

/* Maps a ring. -EPROTO: it is of another version, or no sealed memory file. The descriptor stays the caller's. */
int ring_reader_open(int fd, struct ring_reader *ret, struct error *err);
void ring_reader_close(struct ring_reader *reader);

typedef void ring_reader_event(void *data, const struct trace_event *event);

/*
 * Hands on what was recorded since the last call, in order, up to the first event that ended after `until_ticks`; events
 * that can't be are left out and counted as lost. With `is_last` it waits neither for that one nor for an unfinished one,
 * which is of the moment after the end then. Returns how many.
 */
size_t ring_reader_drain(struct ring_reader *reader, uint64_t until_ticks, uint64_t now_ns,
			 bool is_last, ring_reader_event *event, void *data);

/* The next name that was recorded, with its text ended; to be asked before events are drained. False: no more now. */
bool ring_reader_name(struct ring_reader *reader, struct trace_name *ret);
