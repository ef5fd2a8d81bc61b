#include "daemon/kubelet/kube/card_use.h"

#include <stdlib.h>
#include <string.h>

#define NOW_SAMPLES (CARD_USE_SAMPLES / 5)
#define PEAK_OF_TEN 9
#define NEWS_PCT 5
#define NEWS_OF_MEMORY 20 /* a change of more than 1/20 of the card's memory counts */

void card_use_add(struct card_use *u, double pct)
{
	u->pct[u->next] = (float)(pct > 0 ? pct : 0);
	u->next = (u->next + 1) % CARD_USE_SAMPLES;
	if (u->count < CARD_USE_SAMPLES)
		u->count++;
}

static int compare(const void *a, const void *b)
{
	float x = *(const float *)a, y = *(const float *)b;
	return (x > y) - (x < y);
}

double card_use_peak(const struct card_use *u)
{
	float sorted[CARD_USE_SAMPLES];
	if (!u->count)
		return 0;
	memcpy(sorted, u->pct, u->count * sizeof(*sorted));
	qsort(sorted, u->count, sizeof(*sorted), compare);
	return (double)sorted[(u->count * PEAK_OF_TEN + 9) / 10 - 1];
}

double card_use_now(const struct card_use *u)
{
	unsigned count = u->count < NOW_SAMPLES ? u->count : NOW_SAMPLES;
	double sum = 0;
	for (unsigned i = 1; i <= count; i++)
		sum += (double)u->pct[(u->next + CARD_USE_SAMPLES - i) % CARD_USE_SAMPLES];
	return count ? sum / count : 0;
}

static uint64_t apart(uint64_t a, uint64_t b)
{
	return a > b ? a - b : b - a;
}

bool card_use_must_publish(const struct card_use_change *n)
{
	const struct kube_use *a = n->published, *b = n->is;
	return apart(a->peak_pct, b->peak_pct) >= NEWS_PCT || a->held_pct != b->held_pct ||
	       (n->has_opportunistic && apart(a->now_pct, b->now_pct) >= NEWS_PCT) ||
	       apart(a->memory_mib, b->memory_mib) * NEWS_OF_MEMORY > n->card_mib;
}
