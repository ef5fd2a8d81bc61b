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

/* Number of whole units in that much memory. */
unsigned units_of(uint64_t memory_bytes);
/* Number of units of all cards. */
unsigned units_count(const struct units *units);

/* Checks the names. -EINVAL if one is not a name of these units, or occurs twice; the error says which. -ENOMEM. */
int units_check(const struct units *units, char *const *ids, size_t count, struct error *err);
