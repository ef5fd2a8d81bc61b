/*
 * The order of steps with the processes of one tenant, from what the driver says of each: nothing else is
 * remembered, so whoever comes after a helper that died at any step goes on rightly. Pure; thread safe.
 *
 *     to OUT: all are locked, then all are checkpointed
 *     to IN:  all are restored, then all are unlocked
 *
 * So none of them runs while another's memory is out. What is gone or has failed for good has no steps.
 */
#pragma once

#include <stddef.h>

#include "daemon/gpu/nvml/checkpoint.h"

enum checkpoint_goal { CHECKPOINT_IN, CHECKPOINT_OUT };

struct checkpoint_next {
	enum checkpoint_step step; /* CHECKPOINT_NOTHING: the goal is reached */
	size_t index;              /* with which process */
};

struct checkpoint_next checkpoint_next(enum checkpoint_goal goal,
				       const enum checkpoint_state *states, size_t count);

/* More steps than this to a goal: the driver's answers make no sense. */
size_t checkpoint_most_steps(size_t count);
