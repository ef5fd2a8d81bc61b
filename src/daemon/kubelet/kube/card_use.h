/*
 * How much of a card's time was used over the last minutes, for whoever would place by it: a peak that lulls do not hide,
 * and an average of late that shows what is there now. Pure; not thread safe.
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
 * Is it worth saying anew, by as much as an API server may be troubled with: 5 points of time, any change of guarantees, a
 * twentieth of what the card has in memory; what is used now alone where somebody is there who could be in need of it.
 */
struct card_use_news {
	const struct kube_use *said, *is; /* of one card */
	uint64_t card_mib;
	bool has_fillers;
};
bool card_use_is_news(const struct card_use_news *news);
