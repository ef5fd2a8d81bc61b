/*
 * Cards as units of memory of 256 MiB, with gpu-manager's vocabulary: the kubelet is shown as many devices "<UUID>-<number>" of
 * each card as units fit it. It counts with them; which card a container is on they do not say. Pure; thread safe.
 */
#pragma once

#include "daemon/kubelet/devices/slices.h"

#define UNITS_MAX_PER_CARD 9999 /* four digits: 2.4 TiB */

struct units {
	const struct slices *slices; /* of the same cards: what they are called, and where they are */
	unsigned count[SLICES_MAX_CARDS];
};

/* Whole units of so much memory. */
unsigned units_of(uint64_t memory_bytes);
/* Of all cards. */
unsigned units_count(const struct units *units);

/* -EINVAL with the name that is none of these units', or is there twice, and what would be right; -ENOMEM. */
int units_check(const struct units *units, char *const *ids, size_t count, struct error *err);
