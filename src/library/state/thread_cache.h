/* The data that a small allocation on the first device reads (suballoc.h), in a cache line of the process's own page. */
#pragma once

#include "abi/shm/region.h"
#include "library/sys/biased.h"

struct suballoc_leaf;

/* A spare is a chunk reserved for the next small allocation (suballoc.h). TAKEN: an allocation in progress uses it. */
enum suballoc_spare { SUBALLOC_NO_SPARE, SUBALLOC_SPARE_THERE, SUBALLOC_SPARE_TAKEN };

struct suballoc_spare_state {
	_Atomic uint32_t spare;   /* enum suballoc_spare */
	_Atomic uint32_t chunks;  /* number of the device's chunks that have suballocations */
	_Atomic uint32_t is_used; /* the spare was taken since suballoc_trim() last cleared this */
};

/* All zeros is valid. */
struct thread_cache {
	struct biased_lock lock; /* guards the spares and the states of chunks */
	struct suballoc_leaf *_Atomic last_leaf;
	struct suballoc_spare_state spares[REGION_MAX_DEVICES];
};
