/*
 * Tells how much of a card's time was used in the last minutes, so that a scheduler can choose a card. Gives the peak, which
 * short lulls do not lower, and the recent average. No I/O, no clock; not thread safe.
 *
 *     samples:  |.|.|.|.|.|.|.|.|.|.|    each is a sixtieth of the window, newest last
 *                             '-----'    now: average of the last fifth
 *               '-------------------'    peak: nine tenths of the samples are at or below it
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "kube/own/node_cards.h"

#define CARD_USE_SAMPLES 60

struct card_use {
	unsigned count, next;
	float pct[CARD_USE_SAMPLES];
};

void card_use_add(struct card_use *use, double pct);
/* Return the peak and the recent average; 0 without samples. */
double card_use_peak(const struct card_use *use);
double card_use_now(const struct card_use *use);

/*
 * card_use_must_publish() returns true if the use has changed enough for another write to the API server. One of these changes
 * is enough: the peak (or, while the card has opportunistic tenants, the recent average) by 5 percentage points; the sum of
 * guarantees by any amount; the used memory by more than a twentieth of the card's memory.
 */
struct card_use_change {
	const struct kube_use *published, *is; /* last published and current use of one card */
	uint64_t card_mib;
	bool has_opportunistic;
};
bool card_use_must_publish(const struct card_use_change *news);
