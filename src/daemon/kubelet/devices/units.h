/*
 * Cards as units of 256 MiB of memory, for gpu-manager's vocabulary. For each card the kubelet is shown as many devices
 * "<UUID>-<number>" as units fit into the card's memory. The kubelet only counts units; a unit's name does not say on which
 * card the container runs. Pure; thread safe.
 */
#pragma once

#include "daemon/kubelet/devices/slices.h"

#define UNITS_MAX_PER_CARD 9999 /* four digits: 2.4 TiB */

struct units {
	const struct slices *slices; /* gives the names and NUMA nodes of the cards */
	unsigned count[SLICES_MAX_CARDS];
};

/* Returns the number of whole units in that much memory. */
unsigned units_of(uint64_t memory_bytes);
/* Returns the number of units of all cards together. */
unsigned units_count(const struct units *units);

/*
 * Checks that the names are names of these units, and that none occurs twice. Returns -EINVAL if not, and the error says which
 * name is wrong; -ENOMEM if out of memory.
 */
int units_check(const struct units *units, char *const *ids, size_t count, struct error *err);
