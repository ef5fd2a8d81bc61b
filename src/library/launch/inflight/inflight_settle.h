/*
 * Settling: what a thread knows for certain after it has waited for launched work.
 *
 * A sync point is a wait after which nothing launched before it is in flight on the device. Work has ended for certain
 * when it was waited for and nothing was launched meanwhile: it needs no mark then.
 *
 * Thread safe.
 */
#pragma once

#include "library/launch/inflight/inflight_record.h"

/*
 * Whether a wait for all launched work, or for that of one stream, was a sync point: something was launched since the
 * last one, and nothing is in flight on another stream.
 */
bool inflight_is_sync_point(int device, struct inflight_stream *only);

/*
 * After such a wait, of the current context or of one stream. launches_before: inflight_launches() when it began. Does
 * nothing if something was launched since then.
 */
void inflight_note_end(int device, struct inflight_stream *only, uint64_t launches_before);

/* Whether all that was launched on the device has ended for certain. */
bool inflight_has_ended(int device);

/* Launches ever handed to the driver for a device. */
uint64_t inflight_launches(int device);
