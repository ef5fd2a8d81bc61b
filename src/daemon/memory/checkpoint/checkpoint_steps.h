/*
 * A checkpoint moves processes off their cards in steps. This module decides the next step for the processes of one tenant,
 * only from their states in the driver. So if the helper (the process that does the steps) dies at any step, a new helper can
 * continue. Pure; thread safe.
 *
 *  to OUT: all processes are locked, then all are checkpointed
 *  to IN:  all processes are restored, then all are unlocked
 *
 * So no process runs while another's memory is off the card. Processes that are gone or have failed for good get no steps.
 */
#pragma once

#include <stddef.h>

#include "daemon/gpu/nvml/driver_checkpoint.h"

enum checkpoint_goal { CHECKPOINT_IN, CHECKPOINT_OUT };

struct checkpoint_next {
	enum checkpoint_step step; /* CHECKPOINT_NOTHING: the goal is reached */
	size_t index;              /* the process for the step */
};

struct checkpoint_next checkpoint_next(enum checkpoint_goal goal,
				       const enum checkpoint_state *states, size_t count);

/* Returns how many steps a goal needs at most. If more seem to be needed, the driver's answers contradict each other. */
size_t checkpoint_most_steps(size_t count);
