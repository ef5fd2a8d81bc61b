/*
 * Charges calls that take GPU memory and do not tell how much, such as those that load modules, enlarge stacks or make further
 * contexts. The library compares the driver's free memory before and after the call, and charges the difference. The daemon
 * queries NVML within 0.1 s, and corrects the value if other tenants' calls distorted it.
 *
 *     struct measured m;
 *     measured_begin(&m, index);
 *     result = the driver's call
 *     if (result == CUDA_SUCCESS && !measured_charge(&m))
 *             undo, measured_charge_retry(&m) ? call again : CUDA_ERROR_OUT_OF_MEMORY
 *     if (the second call failed)
 *             measured_refund(&m)
 *
 * Nothing is measured if the index is negative, no context is current, or the process captures a stream. The daemon's next
 * queries find that memory. Thread safe.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct measured {
	int index; /* -1 if nothing is measured */
	size_t free_before;
	uint64_t used_before; /* the tenant's memory in the ledger */
	uint64_t grown;       /* bytes that the call took */
	uint64_t charged;     /* by measured_charge() or measured_charge_retry() */
};

void measured_begin(struct measured *m, int index);

/* Returns false, without charging, if what the call took exceeds the quota. */
bool measured_charge(struct measured *m);

/*
 * Call after undoing the call. The memory that became free is a second measurement: other tenants may have distorted the
 * first. If it fits the quota, charges it and returns true; then the caller makes the call again.
 */
bool measured_charge_retry(struct measured *m);

/* Call if the driver's call failed after its memory was charged. */
void measured_refund(const struct measured *m);

/* For a call that cannot be undone: charges even beyond the quota. */
void measured_charge_always(struct measured *m);

/* For memory that the call freed. */
void measured_release(struct measured *m);
