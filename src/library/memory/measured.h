/*
 * Calls that take memory on the GPU and do not tell how much: modules, stacks, further contexts. The library compares the
 * driver's figure for free memory before and after the call, and charges the difference at once as memory that no call
 * names. The daemon queries NVML within 0.1 s, and corrects the value if other tenants' calls distorted it.
 *
 *     struct measured m;
 *     measured_begin(&m, index);
 *     result = the driver's call
 *     if (result == CUDA_SUCCESS && !measured_fits(&m))
 *             undo, measured_undone(&m) ? call again : CUDA_ERROR_OUT_OF_MEMORY
 *     if (the second call failed)
 *             measured_give_back(&m)
 *
 * Nothing is measured if the index is below 0, if no context is current, or while the process captures a stream. Then the
 * daemon's next queries find the memory. Thread safe.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct measured {
	int index; /* -1 if nothing is measured */
	size_t free_before;
	uint64_t used_before; /* the tenant's memory by the ledger */
	uint64_t grown;
	uint64_t charged; /* bytes charged by measured_fits() or measured_undone() */
};

void measured_begin(struct measured *m, int index);

/* Charges what the call took. Returns false if that exceeds the quota; then nothing is charged. */
bool measured_fits(struct measured *m);

/*
 * Call after undoing the call. The memory that came back is a second measurement, since other tenants may have
 * distorted the first. Returns true if this amount fits: the memory is charged, and the caller makes the call
 * again.
 */
bool measured_undone(struct measured *m);

/* Gives back what was charged, if the call or what follows it has failed after all. */
void measured_give_back(const struct measured *m);

/* As measured_fits(), for a call that cannot be undone: charges the memory even if it does not fit. */
void measured_keep(struct measured *m);

/* Gives back the charge for memory that the call freed on the GPU. */
void measured_freed(struct measured *m);
