/*
 * Tells from the waits of the program's threads which work has ended, without asking the driver. Work has certainly ended if a
 * thread waited for it and nothing was launched meanwhile. A sync point is a wait after which nothing launched before is in
 * flight on the device.
 *
 * Thread safe.
 */
#pragma once

#include "library/launch/inflight/inflight_record.h"

/*
 * True if a wait for all launched work, or for the stream `only`, was a sync point. Something must have been launched since the
 * last sync point, and nothing may be in flight on another stream.
 */
bool inflight_is_sync_point(int device, struct inflight_stream *only);

/*
 * Call after a wait for all work of the current context, or of the stream `only`: records that this work has ended. After a
 * wait for one stream, also records the end of work in other streams whose marks were all reached. launches_before is the value
 * of inflight_launches() when the wait began. Does nothing if something was launched since then.
 */
void inflight_note_end(int device, struct inflight_stream *only, uint64_t launches_before);

/* True if all launches on the device are known to have ended, by inflight_note_end(). */
bool inflight_has_ended(int device);

/* Returns how many launches were handed to the driver for a device so far. */
uint64_t inflight_launches(int device);
