/*
 * A checkpoint moves processes off their GPUs in steps. This module decides the next step for the processes of one tenant, only
 * from their states in the driver. So if the helper (the process that does the steps) dies at any step, a new one can continue.
 * Pure; thread safe.
 *
 *  to OUT: all processes are locked, then all are checkpointed
 *  to IN:  all processes are restored, then all are unlocked
 *
 * So no process runs while another's memory is off the GPU. Processes that are gone or have failed for good get no steps.
 */
#pragma once

#include <stddef.h>

#include "daemon/gpu/nvml/driver_checkpoint.h"

enum checkpoint_goal { CHECKPOINT_IN, CHECKPOINT_OUT };

struct checkpoint_next {
	enum checkpoint_step step; /* CHECKPOINT_NOTHING: the goal is reached */
	size_t index;
};

struct checkpoint_next checkpoint_next(enum checkpoint_goal goal,
				       const enum checkpoint_state *states, size_t count);

/* The most steps that a goal needs. If more seem to be needed, the driver's answers contradict each other. */
size_t checkpoint_most_steps(size_t count);
