/* The kernel of known cost.
 *
 * On a real GPU it is a fixed number of dependent multiply-adds a thread, never
 * a loop that watches a clock: a preempted kernel's clock runs on, and it would
 * "finish" while it was not running. The number is calibrated with the GPU to
 * itself. On the simulated GPU a kernel's name says its cost.
 */
#pragma once

#include "driver.h"

#include <stdbool.h>
#include <stdint.h>

struct kernel {
	CUfunction function;
	unsigned blocks;
	uint32_t iters; /* turns of the loop; unused on the simulated GPU */
	double cost_s;  /* alone on the GPU, back to back with its like */
	bool simulated;
	bool cooperative; /* launched as such: all its blocks must fit the card at once */
};

/* Loads the kernel for `blocks` blocks and a cost of cost_us. With iters zero
 * a real GPU is calibrated, which takes about a second, needs the GPU to
 * itself, and sets cost_s to what was measured; otherwise iters is taken on
 * trust and cost_s is cost_us. The module stays loaded until the context goes. */
void kernel_load(struct kernel *k, const struct driver *d, unsigned cost_us, unsigned blocks,
		 uint32_t iters);

/* One asynchronous launch. */
void kernel_launch(const struct kernel *k, const struct driver *d, CUstream stream);
