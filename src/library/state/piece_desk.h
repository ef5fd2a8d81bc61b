/* What a small allocation looks at (piece.h), in one line of the cache: a part of the process's own page (process_state.h). */
#ifndef ALLOT_LIBRARY_STATE_PIECE_DESK_H
#define ALLOT_LIBRARY_STATE_PIECE_DESK_H

#include "abi/shm/region.h"
#include "library/sys/biased.h"

struct piece_leaf;

enum piece_spare { PIECE_NO_SPARE, PIECE_SPARE_THERE, PIECE_SPARE_TAKEN };

struct piece_stock {
	_Atomic uint32_t spare;
	_Atomic uint32_t chunks;
	_Atomic uint32_t is_used; /* the spare was taken since the helper's last look */
};

/* All zero is one that nothing was done at. */
struct piece_desk {
	struct biased_lock lock;              /* of the stocks and of the chunks' states */
	struct piece_leaf *_Atomic last_leaf; /* looked into last */
	struct piece_stock stock[REGION_MAX_DEVICES];
};

#endif
