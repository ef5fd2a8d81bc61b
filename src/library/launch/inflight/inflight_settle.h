/*
 * Tells from the waits of the program's threads which work has ended, without asking the driver. Work has certainly ended if a
 * thread waited for it and nothing was launched meanwhile. A sync point is a wait after which nothing launched before is in
 * flight on the device. Thread safe.
 */
#pragma once

#include "library/launch/inflight/inflight_record.h"

/* After a wait for all work, or for stream `only`: a sync point if work was launched, and no other stream has any in flight. */
bool inflight_is_sync_point(int device, struct inflight_stream *only);

/*
 * Call after a wait for all work of the current context, or of the stream `only`: records that this work has ended. After a
 * wait for `only`, records the same of other streams whose marks were all reached. launches_before is inflight_launches() when
 * the wait began. Does nothing if that number has changed since.
 */
void inflight_note_end(int device, struct inflight_stream *only, uint64_t launches_before);

/* True if all launches on the device have ended, as far as inflight_note_end() knows. */
bool inflight_has_ended(int device);

uint64_t inflight_launches(int device);
