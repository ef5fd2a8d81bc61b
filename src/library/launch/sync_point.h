/*
 * A sync point is the moment at which a thread has waited for everything that the process has launched on a
 * device. Training loops end each step with one. The daemon ends a turn there if it can
 * (policy/lease/rules/steps.h), since a turn that ends elsewhere costs the program its lead over the GPU. Sync
 * points are counted in the report. If the daemon asks for it, the thread rings the doorbell at each.
 *
 * The thread's working time since the last sync point is counted too. A program that computes between its steps
 * leaves GPU time to others; a loop that only launches and waits does not (policy/lease/sliced.c).
 *
 * Not on the launch path. Thread safe.
 */
#pragma once

#include "library/launch/inflight/work.h"

/* Call before a wait, so that the calls below know what happened during it. */
void sync_point_before(void);
/* Call after a successful wait for all work of the current context. */
void sync_point_after_all(void);
/* Call after a successful wait for one stream. It is a sync point if no other stream has work in flight. */
void sync_point_after_stream(CUstream stream, enum stream_meaning streams);
