/*
 * A sync point is a wait after which none of the process's work on a device is in flight, as at the end of a training step. The
 * daemon ends a turn there if it can (policy/lease/rules/steps.h), because there the program has no launches queued ahead of
 * the GPU. If a turn ends elsewhere, the program loses that lead, and must build it up again in its next turn. Sync points are
 * counted in the report, and ring the doorbell if the daemon asks for that.
 *
 * The time from a sync point to the next launch is counted too. During that time the GPU is idle. A program that computes
 * between its steps leaves such time to others; a loop that only launches and waits does not (policy/lease/sliced.c).
 *
 * Not on the launch path. Thread safe.
 */
#pragma once

#include "library/launch/inflight/work.h"

/* Call before a wait for GPU work: notes the device and its launches so far. */
void sync_point_before(void);
/*
 * Counts the time since the last sync point, without waits at the gate (region_bell.gap_ns). Call for the first launch after a
 * sync point, when that launch has passed the gate.
 */
void sync_point_launch(int index);
/* Call after a successful wait for all work of the current context: counts a sync point, if the wait was one. */
void sync_point_after_all(void);
/* Call after a successful wait for one stream: counts a sync point, if no other stream has work in flight. */
void sync_point_after_stream(CUstream stream, enum stream_meaning streams);
