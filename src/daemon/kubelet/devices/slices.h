/*
 * Cards as equal slices. Each card is shown to the kubelet as `per_card` devices "<UUID>-<number>". Each device is worth an equal
 * part of the card's memory and time. The names alone say which share of which card a call is for, so we need not find out for
 * which pod it is.
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
#define SLICE_ID_MAX 64 /* including the NUL: the kubelet allows names of 63 bytes */

struct slices {
	unsigned card_count, per_card;
	const char *uuid[SLICES_MAX_CARDS]; /* like "GPU-..."; owned by the caller */
	int numa[SLICES_MAX_CARDS];         /* NUMA node; -1 if unknown */
};

/* Returns true if the names of all slices of this card are short enough. */
bool slices_can_name(const char *uuid);

void slice_format(const struct slices *slices, unsigned card, unsigned number,
		  char ret_id[SLICE_ID_MAX]);

/*
 * Parses the name of a slice. Returns -EINVAL if it is not one of these slices; the error then says what a right name looks
 * like.
 */
int slice_parse(const struct slices *slices, const char *id, unsigned *ret_card,
		unsigned *ret_number, struct error *err);

/* A subset of the slices. */
struct slice_set {
	struct slots card[SLICES_MAX_CARDS];
};

/* Parses names of slices. Returns -EINVAL if a name is not one of these slices, or occurs twice. */
int slice_set_parse(const struct slices *slices, char *const *ids, size_t count,
		    struct slice_set *ret, struct error *err);

/* The share of a card that a number of its slices stands for. */
struct slice_share {
	uint64_t memory_bytes; /* whole MiB, rounded down, so that all slices together fit the card */
	double cores_pct;      /* rounded down to two decimals */
	double limit_pct;      /* equals cores_pct if the limit is hard, else 100 */
};

struct slice_share slices_worth(unsigned per_card, unsigned count, uint64_t card_bytes,
				bool is_hard);

/*
 * Chooses `size` of the available slices, including all of `must`. Uses as few cards as possible. Among equally good cards it
 * prefers those with the fewest available slices, so that whole cards stay free. Returns -EINVAL if too few slices are
 * available, if a slice of `must` is not available, or if `must` has more than `size` slices.
 */
int slices_prefer(const struct slices *slices, const struct slice_set *available,
		  const struct slice_set *must, unsigned size, struct slice_set *ret,
		  struct error *err);
/*
 * Like slices_prefer(), but first takes an equal number of slices from each card in `cards` (bit i is card i), as far as the
 * cards have slices available.
 */
int slices_prefer_on(const struct slices *slices, const struct slice_set *available,
		     const struct slice_set *must, unsigned size, uint64_t cards,
		     struct slice_set *ret, struct error *err);
