/*
 * How much of a card's time was used over the last minutes, so that a scheduler can place pods by it. The peak shows load in
 * spite of short lulls; the recent average shows the load now. Pure; not thread safe.
 *
 *     samples:  |.|.|.|.|.|.|.|.|.|.|    one a sixtieth of the window, the newest last
 *                             '-----'    now: the average of the last fifth
 *               '-------------------'    peak: nine tenths of the samples are at or below it
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "kube/own/uses.h"

#define CARD_USE_SAMPLES 60

struct card_use {
	unsigned count, next;
	float pct[CARD_USE_SAMPLES];
};

void card_use_add(struct card_use *use, double pct);
/* Of the samples that there are; 0 without any. */
double card_use_peak(const struct card_use *use);
double card_use_now(const struct card_use *use);

/*
 * Whether the use has changed enough to be published again, as each write costs the API server: by 5 points of time, by any
 * guarantee, or by a twentieth of the card's memory. The use now counts only while opportunistic tenants are there.
 */
struct card_use_news {
	const struct kube_use *said, *is; /* of one card */
	uint64_t card_mib;
	bool has_opportunistic;
};
bool card_use_is_news(const struct card_use_news *news);
