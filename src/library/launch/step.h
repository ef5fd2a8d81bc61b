/*
 * A step is what a program does on a device between two waits for its work. Training loops and inference servers end each step
 * or token with such a wait. The report counts the lengths of steps (abi/shm/step_counts.h), for people to see.
 *
 * A step ends when something was launched since the end of the last step, and one of these calls succeeds:
 *
 *   cuCtxSynchronize
 *   cuStreamSynchronize   if no other stream of the device has work in flight: a sync point (sync_point.h)
 *   cuEventSynchronize    for servers that launch the next step before they read this one's result
 *
 * A step begins where the last one ended. But after STEP_PAUSE_NS without work in flight, it begins at the first launch, even
 * if that launch waits at the gate. So a server's wait for a request is not part of a step, but its wait for the GPU is.
 *
 * Thread safe. Threads that wait on one device for different work end each other's steps.
 */
#pragma once

#include <stdint.h>

#include "library/sys/sys.h"

#define STEP_PAUSE_NS (20 * NS_PER_MS)

/* Call at now_ns, after a wait for all work of the device. Ends a step if something was launched since the last one. */
void step_end(int index, uint64_t now_ns);
/* Call after the thread has waited for an event of its current context. */
void step_after_event(void);
