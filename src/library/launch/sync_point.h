/*
 * A sync point is a wait after which none of the process's work on a device is in flight, as at the end of a training step. The
 * daemon ends a turn there if it can (policy/lease/rules/steps.h), because the program then has no launches queued ahead of the
 * GPU. Elsewhere the program would lose that lead, and must build it up again in its next turn. Sync points are counted in the
 * report, and ring the doorbell if the daemon asks for that.
 *
 * The time from a sync point to the next launch, when the GPU is idle, is counted too. A program that computes between its
 * steps leaves such time to others; a loop that only launches and waits does not (policy/lease/sliced.c).
 *
 * Not on the launch path. Thread safe.
 */
#pragma once

#include "library/launch/inflight/work.h"

/* Call before a wait for GPU work. */
void sync_point_before(void);
/* Counts the time since the sync point, less waits at the gate. Call when the first launch after it has passed the gate. */
void sync_point_launch(int index);
/* Call after a successful wait for all work of the current context. */
void sync_point_after_all(void);
/* Call after a successful wait for one stream. It is a sync point if no other stream has work in flight. */
void sync_point_after_stream(CUstream stream, enum stream_meaning streams);
