/*
 * A sync point is a moment in which a thread has waited for all that the process has launched on a device. Trainings end each
 * step so. The daemon ends a turn there if it can (policy/lease/rules/steps.h), since a turn that ends elsewhere takes the
 * program's lead over the GPU away. Sync points are counted in the report; the thread rings for them where the daemon asks.
 *
 * The thread's working time since the last sync point is counted too: a program that decides something between its steps
 * leaves GPU time to others, a loop that only launches and waits does not (policy/lease/sliced.c).
 *
 * Not on the launch path. Thread safe.
 */
#pragma once

#include "library/launch/inflight/work.h"

/* Before a wait. */
void sync_point_before(void);
/* After one that succeeded. It has waited for all work of the current context. */
void sync_point_after_all(void);
/* For that of one stream: a sync point, unless there is work on another. */
void sync_point_after_stream(CUstream stream, enum stream_meaning streams);
