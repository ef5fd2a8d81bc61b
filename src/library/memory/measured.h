/*
 * Calls that make memory appear on the card and do not say how much: modules, stacks, further contexts.
 * Measured around the call, by what the driver says is free on the card, and charged at once as what no
 * call names; the daemon looks within 0.1 s, and corrects what others did to the card meanwhile.
 *
 *     struct measured m;
 *     measured_begin(&m, index);
 *     result = the driver's call
 *     if (result == CUDA_SUCCESS && !measured_fits(&m))
 *             undo, measured_undone(&m) ? once more : CUDA_ERROR_OUT_OF_MEMORY
 *
 * With an index below 0, without a current context to ask in, or while the process captures a stream,
 * nothing is measured: then the daemon's next looks find it. Thread safe.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct measured {
	int index; /* -1: nothing is measured */
	size_t free_before;
	uint64_t used_before; /* by the tenant's ledger */
	uint64_t grown;
};

void measured_begin(struct measured *m, int index);

/* What the call made is charged, or too much for the quota: false, and nothing is charged. */
bool measured_fits(struct measured *m);

/*
 * After the call was undone. What came back is a second reading of what it had made: other tenants may
 * have spoilt the first. True: by this one it fits, and is charged: call again.
 */
bool measured_undone(struct measured *m);

/* As measured_fits(), for what can't be undone: charged whether or not it fits. */
void measured_keep(struct measured *m);

/* What the call gave back to the card is charged no longer. */
void measured_freed(struct measured *m);
