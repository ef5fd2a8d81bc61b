/*
 * The feeder: the thread that hands what is queued (ahead_queue.h) to the driver, in order, through the gate.
 */
#ifndef ALLOT_INTERPOSE_AHEAD_FEED_H
#define ALLOT_INTERPOSE_AHEAD_FEED_H

#include <stdbool.h>

#include "driver/cuda_abi.h"

/* Makes the thread, if there is none; false: none can be had. Holds the queue's lock. */
bool ahead_feed_start(void);

/* Is it the one that asks? */
bool ahead_feed_is_me(void);

/* In a forked child: there is none. */
void ahead_feed_reset(void);

/* Of ahead.c: a call that was handed over has failed; and is that still to be told to the program? */
void ahead_failed(CUresult result);
bool ahead_keeps_error(void);

/* Of ahead_meet.c: an event's end has its turn. */
CUresult ahead_end_event(CUevent event);

/* Of ahead_attribute.c: what was kept until nothing is queued any more; and now it is to be set. */
bool ahead_has_lowered(void);
void ahead_set_lowered(void);

/* To the log: how much was queued so far, and what was not. */
void ahead_log(void);

#endif
