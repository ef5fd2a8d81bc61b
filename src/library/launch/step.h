/*
 * Steps: what a program does on a device between two waits for its work. Trainings and inference servers end each step, each
 * token, with one. How long they take is counted in the report (abi/shm/step_counts.h), for people to see.
 *
 * A step ends when something was launched since the last one's end, and
 *
 *   cuCtxSynchronize      has succeeded
 *   cuStreamSynchronize   has, and no work is in flight on another stream of the device: a sync point (sync_point.h)
 *   cuEventSynchronize    has: servers that launch the next step before they look at this one's result wait so
 *
 * It begins where the one before ended; but after a pause, with nothing of the process in flight for STEP_PAUSE_NS, where
 * the launch came that ended the pause, whenever the gate let it pass. So a server's wait for a request is no step, and its
 * wait for the GPU is part of one.
 *
 * Off the way of launches; 15 ns per wait, 40 per wait for an event, with one stream. Thread safe; threads that wait on one device each for work of its own end each
 * other's steps.
 */
#ifndef ALLOT_LIBRARY_LAUNCH_STEP_H
#define ALLOT_LIBRARY_LAUNCH_STEP_H

#include <stdint.h>

#include "library/sys/sys.h"

#define STEP_PAUSE_NS (20 * NS_PER_MS)

/* A wait for all work of the device ended at now_ns. */
void step_end(int index, uint64_t now_ns);
/* A thread has waited for an event, in its current context. */
void step_after_event(void);

#endif
