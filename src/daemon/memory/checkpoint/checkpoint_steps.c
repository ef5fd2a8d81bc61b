#include "daemon/memory/checkpoint/checkpoint_steps.h"

/* Each goal's steps, in order. The first row with a process in its `state` decides: `step` is that process's next step. */
static const struct {
	enum checkpoint_state state;
	enum checkpoint_step step;
} rows[][2] = {
	[CHECKPOINT_IN] = { { CHECKPOINT_SAVED, CHECKPOINT_RESTORE },
			    { CHECKPOINT_LOCKED, CHECKPOINT_UNLOCK } },
	[CHECKPOINT_OUT] = { { CHECKPOINT_RUNNING, CHECKPOINT_LOCK },
			     { CHECKPOINT_LOCKED, CHECKPOINT_SAVE } },
};

struct checkpoint_next checkpoint_next(enum checkpoint_goal goal,
				       const enum checkpoint_state *states, size_t count)
{
	for (size_t k = 0; k < 2; k++)
		for (size_t i = 0; i < count; i++)
			if (states[i] == rows[goal][k].state)
				return (struct checkpoint_next){ rows[goal][k].step, i };
	return (struct checkpoint_next){ CHECKPOINT_NOTHING, 0 };
}

size_t checkpoint_most_steps(size_t count)
{
	return 2 * count;
}
