/*
 * A step is what a program does on a device between two waits for its work. Trainings and inference servers end each step or
 * token with one. Lengths of steps are counted in the report (abi/shm/step_counts.h), for people to see.
 *
 * A step ends when something was launched since the last one's end, and one of these calls succeeds:
 *
 *   cuCtxSynchronize
 *   cuStreamSynchronize   if no work is in flight on another stream of the device: a sync point (sync_point.h)
 *   cuEventSynchronize    servers that launch the next step before they read this one's result wait so
 *
 * A step begins where the last one ended. After a pause, with nothing in flight for STEP_PAUSE_NS, it begins where the launch
 * came that ended the pause, even if the gate held it. So a server's wait for a request is no step, and its wait for the
 * GPU is part of one.
 *
 * Not on the launch path. Thread safe; threads that wait on one device for different work end each other's steps.
 */
#pragma once

#include <stdint.h>

#include "library/sys/sys.h"

#define STEP_PAUSE_NS (20 * NS_PER_MS)

/* A wait for all work of the device ended at now_ns. */
void step_end(int index, uint64_t now_ns);
/* A thread has waited for an event, in its current context. */
void step_after_event(void);
