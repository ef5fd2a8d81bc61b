#include "cli/top/data/history.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"

/* If snapshots are closer, got_1s_pct is taken: the rate between them would be imprecise, as a lease lasts up to 50 ms. */
#define LEAST_INTERVAL_S 1.0

struct track {
	char id[SNAPSHOT_ID_MAX]; /* the tenant's id; "" if the track is a GPU's own */
	int card;
	uint64_t at_ns;
	struct top_share last;
	struct history_rates rates;
	struct history_series series;
};

struct tracks {
	size_t count;
	struct track **track;
};

struct history {
	struct tracks shares, cards;
};

static void tracks_clear(struct tracks *tracks)
{
	for (size_t i = 0; i < tracks->count; i++)
		free(tracks->track[i]);
	free(tracks->track);
	*tracks = (struct tracks){ 0 };
}

int history_make(struct history **ret_history)
{
	*ret_history = calloc(1, sizeof(**ret_history));
	return *ret_history ? 0 : -ENOMEM;
}

struct history *history_free(struct history *history)
{
	if (!history)
		return NULL;
	tracks_clear(&history->shares);
	tracks_clear(&history->cards);
	free(history);
	return NULL;
}

static bool is_of(const struct track *track, const char *id, int card)
{
	return track && track->card == card && strcmp(track->id, id) == 0;
}

/* Takes a track out of the old ones, or makes one. Searches from the last one found: snapshots mostly keep their order. */
static struct track *take(struct tracks *old, size_t *from, const char *id, int card)
{
	struct track *track;

	for (size_t i = 0; i < old->count; i++) {
		size_t at = (*from + i) % old->count;

		if (is_of(old->track[at], id, card)) {
			*from = at + 1;
			return steal_pointer(&old->track[at]);
		}
	}
	track = calloc(1, sizeof(*track));
	if (track) {
		strcpy(track->id, id);
		track->card = card;
	}
	return track;
}

static void push(struct history_series *series, double got, double memory)
{
	if (series->count == HISTORY_LENGTH) {
		memmove(series->got, series->got + 1, sizeof(series->got) - sizeof(*series->got));
		memmove(series->memory, series->memory + 1,
			sizeof(series->memory) - sizeof(*series->memory));
		series->count--;
	}
	series->got[series->count] = (float)got;
	series->memory[series->count] = (float)memory;
	series->count++;
}

/* Sets no rates if a counter went back, because then the daemon was restarted. */
static void rate(struct track *track, const struct top_share *now, uint64_t at_ns)
{
	const struct top_share *last = &track->last;
	struct history_rates *rates = &track->rates;
	double interval_s = (double)(at_ns - track->at_ns) / (double)NSEC_PER_SEC;

	*rates = (struct history_rates){ 0 };
	if (!track->at_ns || at_ns <= track->at_ns || now->leases < last->leases ||
	    now->waited_s < last->waited_s || now->used_s < last->used_s ||
	    now->denied < last->denied || now->expired < last->expired)
		return;
	*rates = (struct history_rates){
		.is_set = true,
		.interval_s = interval_s,
		.leases_per_s = (double)(now->leases - last->leases) / interval_s,
		.waiting = (now->waited_s - last->waited_s) / interval_s,
		.got_pct = 100 * (now->used_s - last->used_s) / interval_s,
		.denied = now->denied - last->denied,
		.expired = now->expired - last->expired,
	};
}

static void update_share(struct track *track, const struct top_share *share, uint64_t at_ns)
{
	double got_pct = share->got_1s_pct;

	rate(track, share, at_ns);
	if (track->rates.is_set && track->rates.interval_s >= LEAST_INTERVAL_S)
		got_pct = track->rates.got_pct;
	push(&track->series, got_pct / 100,
	     share->quota_bytes ? (double)share->used_bytes / (double)share->quota_bytes : 0);
	track->last = *share;
	track->at_ns = at_ns;
}

static void update_card(struct track *track, const struct top_card *card)
{
	push(&track->series, card->busy_pct / 100,
	     card->memory_bytes ? (double)card->used_bytes / (double)card->memory_bytes : 0);
}

/* Replaces the tracks by those of the snapshot's shares, or of its GPUs. */
static int update(struct tracks *old, const struct snapshot *s, bool is_of_cards)
{
	size_t count = is_of_cards ? s->card_count : s->share_count, from = 0;
	struct tracks next = { .track = calloc(count + 1, sizeof(*next.track)) };

	for (; next.track && next.count < count; next.count++) {
		const struct top_share *share = is_of_cards ? NULL : &s->shares[next.count];
		struct track *track = take(old, &from, share ? s->tenants[share->tenant].id : "",
					   share ? share->card : s->cards[next.count].index);

		if (!track) {
			tracks_clear(&next);
			break;
		}
		next.track[next.count] = track;
		if (share)
			update_share(track, share, s->at_ns);
		else
			update_card(track, &s->cards[next.count]);
	}
	if (!next.track)
		return -ENOMEM;
	tracks_clear(old);
	*old = next;
	return 0;
}

int history_update(struct history *history, const struct snapshot *snapshot)
{
	int r = update(&history->shares, snapshot, false);

	return r < 0 ? r : update(&history->cards, snapshot, true);
}

const struct history_rates *history_share_rates(const struct history *history, size_t share)
{
	static const struct history_rates none;

	return share < history->shares.count ? &history->shares.track[share]->rates : &none;
}

const struct history_series *history_share(const struct history *history, size_t share)
{
	static const struct history_series none;

	return share < history->shares.count ? &history->shares.track[share]->series : &none;
}

const struct history_series *history_card(const struct history *history, size_t card)
{
	static const struct history_series none;

	return card < history->cards.count ? &history->cards.track[card]->series : &none;
}
