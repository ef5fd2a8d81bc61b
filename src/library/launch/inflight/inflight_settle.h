/*
 * Settling: what a thread knows for certain after it has waited for launched work.
 *
 * A sync point is a wait after which nothing launched before it is in flight on the device. Work has certainly
 * ended if a thread waited for it and nothing was launched meanwhile. Such work needs no mark.
 *
 * Thread safe.
 */
#pragma once

#include "library/launch/inflight/inflight_record.h"

/*
 * True if a wait for all launched work, or for that of one stream, was a sync point: something was launched since
 * the last one, and nothing is in flight on another stream.
 */
bool inflight_is_sync_point(int device, struct inflight_stream *only);

/*
 * Call after a wait for all work of the current context, or of the stream `only`. launches_before is
 * inflight_launches() from when the wait began. Does nothing if something was launched since then.
 */
void inflight_note_end(int device, struct inflight_stream *only, uint64_t launches_before);

/* True if everything launched on the device has certainly ended. */
bool inflight_has_ended(int device);

/* Number of launches handed to the driver for a device so far. */
uint64_t inflight_launches(int device);
