/*
 * The swap schedule decides which tenants' memory is on the GPUs if the memory of all swappable tenants (on_full swap) does not
 * fit at once. Pure policy on plain data: the input is an observation of each tenant, the output is which tenants should be on
 * their GPUs. A tenant of several GPUs is on all of them or on none, because its work needs all.
 *
 * - Tenants that fit together stay. A tenant is moved only to make room for another that needs room.
 * - A tenant needs room if it is out and has work, or has an allocation that waits. Such tenants form a queue. The first is
 *   served first, and no other may overtake it on a GPU that it needs, unless the first would not fit even if all others left.
 *   A queued tenant keeps all its GPUs from the tenants behind it, so no other tenant comes before it twice.
 * - Tenants leave to make room in this order: tenants without work for `idle_ns`, the longest idle first, then tenants whose
 *   turn is over, in the order in which they came in. Only tenants that hold memory on a GPU without room are chosen. No
 *   tenant leaves unless all that leave make enough room. A tenant that did not leave when ordered, or does not answer, is
 *   skipped for `retry_ns`.
 * - A turn lasts so long that moving takes at most `move_part` of the time, by the measured cost of moves: slow moves and large
 *   tenants make long turns, so there is no thrashing. Of the tenants at work on the same GPUs, the one with the least weight
 *   gets this turn. The others get longer turns in proportion to their weight, up to `weight_most` times. A turn begins when
 *   the tenant gets the last bytes that it waited for. An idle tenant stays for twice the time that its move takes.
 * - A tenant that is out and needs nothing comes back when its GPUs have had no queue, and room for all such tenants, for at
 *   least the length of a turn. So it does not come back between two allocations of a tenant that still grows.
 * - No tenant returns before there is room for all of it. The room is reserved from the order on. The exception is a tenant for
 *   which there can never be room: it returns, and its allocation then fails.
 *
 * So a tenant that needs room, and could have it, waits for a bounded time: for each tenant before it in the queue, at most one
 * turn of each tenant on the GPU, plus the moves. Units are bytes and nanoseconds. Not thread safe.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define SWAP_SCHEDULE_MOST 256
#define SWAP_SCHEDULE_CARDS 64
#define SWAP_SCHEDULE_PARTS 16 /* most GPUs of one tenant */

struct swap_schedule_config {
	uint64_t turn_min_ns;
	uint64_t idle_ns;
	uint64_t retry_ns;
	/* an order to leave is given up after this long without progress, or four times the move's length if longer */
	uint64_t answer_ns;
	double move_part; /* part of the time that moves may take, 0 to 1 */
	/* the longest turn is at most this many times the shortest, whatever the weights */
	double weight_most;
	double bytes_per_s; /* assumed speed of moves, until the first move was measured */
};

enum swap_schedule_place {
	SWAP_SCHEDULE_IN,
	SWAP_SCHEDULE_LEAVING, /* ordered to leave, and not gone yet */
	SWAP_SCHEDULE_OUT,
	SWAP_SCHEDULE_RETURNING, /* ordered to return, and not wholly on its GPUs yet */
};

/* One tenant's memory on a GPU. */
struct swap_schedule_part {
	unsigned card;          /* no two parts have the same */
	uint64_t fixed_bytes;   /* always on the GPU */
	uint64_t movable_bytes; /* on the GPU unless the tenant is out */
	uint64_t wanted_bytes;  /* needed by an allocation that waits; 0: none */
};

struct swap_schedule_observation {
	enum swap_schedule_place place;
	unsigned part_count;
	struct swap_schedule_part part[SWAP_SCHEDULE_PARTS];
	double weight;       /* turns are proportional to this; 0 or less counts as 1 */
	bool has_work;       /* work is in flight, or a thread waits to launch or for GPU memory */
	bool is_out_by_user; /* a user ordered it out, so it needs no room */
	bool has_refused;    /* the tenant could not leave when it was last ordered to leave */
	bool is_short;       /* the tenant found too little room when it returned */
	uint64_t moved_ns;   /* length of its last move; 0: none was measured */
	uint64_t progress;   /* changes while its memory moves */
};

struct swap_schedule_tenant {
	bool is_used;
	struct swap_schedule_observation seen;
	bool should_be_in; /* result: the tenant should be on its GPUs */
	/* a user's order to be out has ended, and the tenant has not returned since */
	bool is_recalled;
	uint64_t in_since_ns;
	uint64_t work_ns; /* when the tenant was last seen with work */
	/* when the tenant was ordered to leave or, if later, last made progress with leaving */
	uint64_t leaves_since_ns;
	bool is_granted; /* the last step granted wanted_bytes, and they are not taken yet */
	uint64_t needs_since_ns;  /* since when the tenant is queued; 0: it needs no room */
	uint64_t spared_until_ns; /* not ordered to leave again before this time */
	uint64_t queued_ns;       /* the value of needs_since_ns when the tenant was let in */
	/* since when other tenants take up the room that is reserved for this tenant's return; 0: there is room */
	uint64_t lacks_since_ns;
	/* since when the tenant would lack room even if all others left; 0: it would have room */
	uint64_t never_since_ns;
	/* did not leave when ordered: no other tenant may count on its memory */
	bool ignored_order;
};

struct swap_schedule {
	struct swap_schedule_config config;
	unsigned card_count; /* as of the last step */
	uint64_t capacity_bytes[SWAP_SCHEDULE_CARDS];
	double bytes_per_s;
	struct swap_schedule_tenant tenant[SWAP_SCHEDULE_MOST];
	unsigned end;    /* all numbers in use are below this */
	uint64_t orders; /* orders to leave so far */
	/*
	 * For each GPU: since when no tenant has queued for it, and all tenants that are out and need nothing would have room
	 * on it. 0 if there is a queue, too little room, or no tenant that is out and needs nothing.
	 */
	uint64_t room_since_ns[SWAP_SCHEDULE_CARDS];
};

struct swap_schedule_config swap_schedule_default_config(void);
void swap_schedule_init(struct swap_schedule *r, const struct swap_schedule_config *config);

/* Adds a tenant that is on its GPUs (is_in) or swapped out. Returns its number; -1 if there are SWAP_SCHEDULE_MOST already. */
int swap_schedule_add(struct swap_schedule *r, bool is_in, uint64_t now_ns);
void swap_schedule_remove(struct swap_schedule *r, int tenant);

void swap_schedule_observe(struct swap_schedule *r, int tenant,
			   const struct swap_schedule_observation *seen, uint64_t now_ns);

/* Sets should_be_in of each tenant. capacity_bytes: per GPU, how much these tenants may hold together. */
void swap_schedule_step(struct swap_schedule *r, const uint64_t *capacity_bytes,
			unsigned card_count, uint64_t now_ns);

/* How long the tenant's turn lasts if another tenant needs need_bytes, summed over that other tenant's GPUs. */
uint64_t swap_schedule_turn_ns(const struct swap_schedule *r, int tenant, uint64_t need_bytes);

/*
 * How many more bytes the tenant may take on the GPU of `part`: UINT64_MAX if nothing is reserved there for another tenant's
 * return, else the bytes that the last step granted.
 */
uint64_t swap_schedule_may_take(const struct swap_schedule *r, int tenant, unsigned part);

/* True if the tenant is queued, and has no room now, but would have room if all tenants that obey orders left. */
bool swap_schedule_can_ever_fit(const struct swap_schedule *r, int tenant);
