/*
 * Decides the next checkpoint step for the processes of one tenant. The decision depends only on
 * the processes' present states in the driver. So another helper can continue correctly after a
 * helper died at any step. Pure; thread safe.
 *
 *  to OUT: all processes are locked, then all are checkpointed
 *  to IN:  all processes are restored, then all are unlocked
 *
 * So no process runs while another's memory is off the card. Processes that are gone or have failed
 * for good get no steps.
 */
#pragma once

#include <stddef.h>

#include "daemon/gpu/nvml/driver_checkpoint.h"

enum checkpoint_goal { CHECKPOINT_IN, CHECKPOINT_OUT };

struct checkpoint_next {
	enum checkpoint_step step; /* CHECKPOINT_NOTHING: the goal is reached */
	size_t index;              /* the process for the step */
};

/* Returns the next step to the goal, by the states of all `count` processes. */
struct checkpoint_next checkpoint_next(enum checkpoint_goal goal,
				       const enum checkpoint_state *states, size_t count);

/*
 * Returns the most steps that can be needed to a goal. If more seem to be needed, the driver's
 * answers contradict each other.
 */
size_t checkpoint_most_steps(size_t count);
