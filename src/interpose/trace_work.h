/*
 * Work in a trace: what the gate let pass, and what it is called. A function's name is asked of the driver when the
 * function is first seen, by the thread that launches it: later it may be gone.
 */
#ifndef ALLOT_INTERPOSE_TRACE_WORK_H
#define ALLOT_INTERPOSE_TRACE_WORK_H

#include <stdbool.h>

#include "interpose/work.h"

/* Records work that was begun at `begin` (ticks) and has just been handed over, or refused. Of a traced process. */
void trace_work(const struct work *work, int device, uint64_t begin, bool is_leased,
		CUresult result);

/* Whether it is called something in this trace already, or never will be. */
bool trace_is_named(const struct work *work);

/*
 * The same of a kernel that passed by the door: trace_launch.h. is_named: as that was before the launch, since the driver
 * leaves nothing of that near.
 */
void trace_kernel(const struct work *work, int device, bool is_named, uint64_t begin,
		  CUresult result);

#endif
