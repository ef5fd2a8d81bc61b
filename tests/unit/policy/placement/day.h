/*
 * A simulated day on one node: containers start, stay and end. The placement policy is exchanged, the trace stays the same. A
 * container that does not fit when it arrives is turned away.
 */
#pragma once

#include "layouts.h"

#define DAY_MINUTES 1440
#define DAY_MOST_TASKS 4000

/* A kind of container, as the memory and compute of a card, in percent. */
struct day_kind {
	unsigned cards; /* 0: a part of one */
	unsigned cores_pct, memory_pct;
	unsigned weight;
	unsigned stay_minutes; /* on average */
};
extern const struct day_kind day_kinds[];
extern const unsigned day_kind_count;

struct day_task {
	double comes, goes; /* minutes */
	const struct day_kind *kind;
};

struct day_trace {
	unsigned count;
	struct day_task task[DAY_MOST_TASKS];
};

/* Draws a day's containers. If all of them fit, they keep about `load_pct` percent of the node's compute in use. */
void day_draw(struct day_trace *trace, const struct place_node *node, unsigned load_pct,
	      uint64_t seed);

/* Chooses cards for a container: false when it does not fit. */
typedef bool day_chooser(const struct place_node *node, const struct day_kind *kind,
			 struct place_choice *ret);
day_chooser day_ours, day_rival;

struct day_result {
	double unusable_cards; /* mean of day_unusable_cards() over the day */
	double left_cards;     /* not given out, mean over the day */
	double links;          /* mean score of a pair of cards in sets of several */
	unsigned placed, turned_away;
	double placed_card_minutes;
};
struct day_result day_run(const struct day_trace *trace, struct place_node node,
			  day_chooser *chooser);

/*
 * Fragmentation: how much of the unallocated compute, in cards, a container of a random kind can't use
 * on average. A container for a part of a card can't use a card with too little compute or memory left.
 * A container for whole cards can't use cards that are partly in use, nor any if too few are free. (As
 * in "Beware of Fragmentation", USENIX ATC 2023.)
 */
double day_unusable_cards(const struct place_node *node);

/* Returns the request of a container of that kind. */
struct place_request day_request(const struct place_node *node, const struct day_kind *kind);
