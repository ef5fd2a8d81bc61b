/*
 * Residence: whose memory is on the cards, when all that may leave them does not fit at once (on_full swap).
 * Pure policy on plain data: what is seen of each tenant goes in, who is to be on its cards comes out.
 * A tenant of several cards is on all of them or on none: its work needs all.
 *
 * - What fits together stays: nobody is moved but to make room for somebody who needs it.
 * - Who needs room (is out and has work, or has an allocation waiting) queues; the first in the queue is
 *   served first, and nobody passes him on a card that he needs, unless all others together could not make
 *   enough room for him. Who waits keeps all his cards from those behind him, so he meets nobody twice.
 * - Room is made by those who have had no work for `idle_ns`, the longest first; then by those whose turn
 *   is over, who came in first; of both only who holds memory where it is short. Nobody leaves unless with
 *   him there is room enough. Who was ordered to leave and did not, or does not answer, is passed over for `retry_ns`.
 * - A turn lasts so long that moving is at most `move_part` of the time, by what moves were seen to cost:
 *   slow moves and large tenants make long turns, so there is no thrashing. Of those who work on the same cards
 *   who has the least weight has that, the others as much more as they have more weight, up to
 *   `weight_most` times. It begins with the last of what was waited for. An idle tenant stays for twice the time that the move takes.
 * - Who is out and needs nothing comes back when on his cards there has been room for all who are out, and
 *   nobody in the queue, for as long as a turn is: not between two allocations of one that is still growing.
 * - Nobody returns before there is room for all of him. That is reserved from the order on. But for whom
 *   there never can be, he may try, and is told.
 *
 * So a tenant that needs room, and could have it, gets it after at most one turn of each who is on the
 * card, for each one before him in the queue, and the moves.
 *
 * Bytes and nanoseconds. Not thread safe.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define SWAP_SCHEDULE_MOST 256
#define SWAP_SCHEDULE_CARDS 64
#define SWAP_SCHEDULE_PARTS 16 /* cards of one tenant */

struct swap_schedule_config {
	uint64_t turn_min_ns;
	uint64_t idle_ns;
	uint64_t retry_ns;
	uint64_t answer_ns; /* an order to leave is given up after this, or four times the move, without progress */
	double move_part;   /* 0 to 1 */
	double weight_most; /* a turn is at most so many times the shortest, for the weight\'s sake */
	double bytes_per_s; /* of a move, until one was seen */
};

enum swap_schedule_place {
	SWAP_SCHEDULE_IN,
	SWAP_SCHEDULE_LEAVING, /* ordered to, and not gone yet */
	SWAP_SCHEDULE_OUT,
	SWAP_SCHEDULE_RETURNING, /* ordered to, and not all there yet */
};

/* A tenant on one of its cards. */
struct swap_schedule_part {
	unsigned card;          /* below SWAP_SCHEDULE_CARDS; each at most once */
	uint64_t fixed_bytes;   /* stay on the GPU always */
	uint64_t movable_bytes; /* on the GPU unless the tenant is out */
	uint64_t wanted_bytes;  /* needed by an allocation that waits; 0: none */
};

struct swap_schedule_seen {
	enum swap_schedule_place place;
	unsigned part_count;
	struct swap_schedule_part part[SWAP_SCHEDULE_PARTS];
	double weight;     /* turns are proportional to it; 0 and less mean 1 */
	bool has_work;     /* or waits for it */
	bool is_put_out;   /* a user ordered it out: it needs no room */
	bool has_refused;  /* the last order to leave failed */
	bool is_short;     /* it found no room to return to */
	uint64_t moved_ns; /* how long its last move took; 0: none was seen */
	uint64_t progress; /* changes while it moves */
};

struct swap_schedule_tenant {
	bool is_used;
	struct swap_schedule_seen seen;
	bool is_to_be_in; /* the order */
	bool is_recalled; /* a user's order to be out has ended, and it has not been let in since */
	uint64_t in_since_ns;
	uint64_t work_ns;         /* when it was last seen to have work */
	uint64_t leaves_since_ns; /* when it was ordered to leave, or last made progress with it */
	bool is_granted; /* the last step granted wanted_bytes, and they are not taken yet */
	uint64_t needs_since_ns;  /* in the queue since then; 0: it needs no room */
	uint64_t spared_until_ns; /* until then it is not ordered to leave again */
	uint64_t queued_ns;       /* when it was let in: its needs_since_ns until then */
	uint64_t lacks_since_ns; /* returning, and others have taken its room since; 0: there is room */
	uint64_t never_since_ns; /* there can't be room for it, as far as seen; 0: there can */
	bool is_stubborn; /* it did not leave when ordered: no other tenant may count on its memory */
};

struct swap_schedule {
	struct swap_schedule_config config;
	unsigned card_count; /* as of the last step, and ... */
	uint64_t capacity_bytes[SWAP_SCHEDULE_CARDS];
	double bytes_per_s;
	struct swap_schedule_tenant tenant[SWAP_SCHEDULE_MOST];
	unsigned end;    /* all tenants are below */
	uint64_t orders; /* to leave, ever */
	/* Since when there is room for all who are out, and nobody needs any; 0: not now. */
	uint64_t room_since_ns[SWAP_SCHEDULE_CARDS];
};

struct swap_schedule_config swap_schedule_default_config(void);
void swap_schedule_init(struct swap_schedule *r, const struct swap_schedule_config *config);

/* A tenant's number; negative: there are SWAP_SCHEDULE_MOST. It is to be where it is. */
int swap_schedule_add(struct swap_schedule *r, bool is_in, uint64_t now_ns);
void swap_schedule_remove(struct swap_schedule *r, int tenant);

void swap_schedule_see(struct swap_schedule *r, int tenant, const struct swap_schedule_seen *seen,
		       uint64_t now_ns);

/*
 * Decides: writes is_to_be_in. `capacity_bytes`: what of each of card_count cards these tenants may hold
 * together; every part's card is one of them.
 */
void swap_schedule_step(struct swap_schedule *r, const uint64_t *capacity_bytes,
			unsigned card_count, uint64_t now_ns);

/* How long a tenant may stay while another needs `need_bytes`, on all its cards together. */
uint64_t swap_schedule_turn_ns(const struct swap_schedule *r, int tenant, uint64_t need_bytes);

/*
 * What a tenant may hold beyond what it does on its `part`: UINT64_MAX where nobody else is to return, whose
 * bytes are reserved there; then what the last step granted it.
 */
uint64_t swap_schedule_may_take(const struct swap_schedule *r, int tenant, unsigned part);

/*
 * True if waiting will bring the room that the tenant lacks: there is none yet, and there would be without the tenants
 * that left when they were last ordered to. False when the room is there already: that is nothing to wait for.
 */
bool swap_schedule_has_hope(const struct swap_schedule *r, int tenant);
