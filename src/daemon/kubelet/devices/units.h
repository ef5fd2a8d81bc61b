/*
 * A unit is 256 MiB of GPU memory, for gpu-manager's resources. For each unit of a card, the kubelet sees a device
 * "<UUID>-<number>". Only the count of a container's units matters: their names do not tell which card the container gets.
 * Pure; thread safe.
 */
#pragma once

#include "daemon/kubelet/devices/slices.h"

/* the number in a unit's name has at most four digits; so at most 2.4 TiB of a card's memory are offered */
#define UNITS_MAX_PER_CARD 9999

struct units {
	const struct slices *slices; /* names and NUMA nodes of the cards */
	unsigned count[SLICES_MAX_CARDS];
};

/* Returns the number of whole units in `memory_bytes`, at most UNITS_MAX_PER_CARD. */
unsigned units_of(uint64_t memory_bytes);
/* Returns the sum over all cards. */
unsigned units_count(const struct units *units);

/* Returns -EINVAL if a name belongs to no unit or occurs twice (`err` names it), or -ENOMEM. */
int units_check(const struct units *units, char *const *ids, size_t count, struct error *err);
