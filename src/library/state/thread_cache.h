/* What a small allocation looks at (suballoc.h), in one line of the cache: a part of the process's own page (process_state.h). */
#pragma once

#include "abi/shm/region.h"
#include "library/sys/biased.h"

struct suballoc_leaf;

enum suballoc_spare { SUBALLOC_NO_SPARE, SUBALLOC_SPARE_THERE, SUBALLOC_SPARE_TAKEN };

struct suballoc_spare_state {
	_Atomic uint32_t spare;
	_Atomic uint32_t chunks;
	_Atomic uint32_t is_used; /* the spare was taken since the helper's last look */
};

/* All zero is one that nothing was done at. */
struct thread_cache {
	struct biased_lock lock;                 /* of the spares and of the chunks' states */
	struct suballoc_leaf *_Atomic last_leaf; /* looked into last */
	struct suballoc_spare_state spares[REGION_MAX_DEVICES];
};
