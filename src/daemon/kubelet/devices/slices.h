/*
 * Cards as equal slices: each is shown to the kubelet as `per_card` devices "<UUID>-<number>", each worth
 * as large a part of its memory and time. The name alone tells card and share, so nobody need guess which
 * pod a call is for.
 *
 * Pure; thread safe.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "daemon/state/slots.h"

#define SLICES_MAX_CARDS 64
#define SLICES_MAX_PER_CARD 100
#define SLICE_ID_MAX 64 /* with its NUL: the kubelet's names have 63 bytes at most */

struct slices {
	unsigned card_count, per_card;
	const char *uuid[SLICES_MAX_CARDS]; /* the caller's, as "GPU-..." */
	int numa[SLICES_MAX_CARDS];         /* NUMA node; -1: not known */
};

/* True when every name of this card's slices is short enough. */
bool slices_can_name(const char *uuid);

void slice_format(const struct slices *slices, unsigned card, unsigned number,
		  char ret_id[SLICE_ID_MAX]);

/* -EINVAL where the name is none of these slices'; the text names it, and says what would be right. */
int slice_parse(const struct slices *slices, const char *id, unsigned *ret_card,
		unsigned *ret_number, struct error *err);

/* Some of the slices. */
struct slice_set {
	struct slots card[SLICES_MAX_CARDS];
};

/* -EINVAL: as above, or a name twice. */
int slice_set_parse(const struct slices *slices, char *const *ids, size_t count,
		    struct slice_set *ret, struct error *err);

/* What some slices of a card are worth. */
struct slice_share {
	uint64_t memory_bytes; /* whole MiB, rounded down: all slices together fit the card */
	double cores_pct;      /* two decimals, rounded down */
	double limit_pct;      /* the same where the limit is hard, else 100 */
};

struct slice_share slices_worth(unsigned per_card, unsigned count, uint64_t card_bytes,
				bool is_hard);

/*
 * Chooses `size` of the available slices, all of `must` among them: of as few cards as hold them; of those
 * that do so as well, the ones that have least to spare, so that whole cards stay free. -EINVAL: there are not so
 * many, a `must` is not available, or there are more of them than are wanted.
 */
int slices_prefer(const struct slices *slices, const struct slice_set *available,
		  const struct slice_set *must, unsigned size, struct slice_set *ret,
		  struct error *err);
/* The same, but as far as there are so many, equally of the cards in `cards`: bit i, card i. */
int slices_prefer_on(const struct slices *slices, const struct slice_set *available,
		     const struct slice_set *must, unsigned size, uint64_t cards,
		     struct slice_set *ret, struct error *err);
