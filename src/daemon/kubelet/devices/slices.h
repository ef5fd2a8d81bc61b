/*
 * A slice is one of `per_card` equal parts of a card. The kubelet sees each slice as a device "<UUID>-<number>", worth an
 * equal part of the card's memory and time. So a device's name alone tells which card it is on, without knowing the pod. Pure;
 * thread safe.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "daemon/state/slots.h"

#define SLICES_MAX_CARDS 64
#define SLICES_MAX_PER_CARD 100
#define SLICE_ID_MAX 64 /* 63 bytes, the most that the kubelet allows, and a NUL */

struct slices {
	unsigned card_count, per_card;
	const char *uuid[SLICES_MAX_CARDS]; /* like "GPU-..."; owned by the caller */
	int numa[SLICES_MAX_CARDS];         /* NUMA node; -1: unknown */
};

/* Returns true if the names of the card's slices are short enough. */
bool slices_can_name(const char *uuid);

void slice_format(const struct slices *slices, unsigned card, unsigned number,
		  char ret_id[SLICE_ID_MAX]);

/* Parses a slice's name. Returns -EINVAL if it names none of these slices; `err` then shows what a name looks like. */
int slice_parse(const struct slices *slices, const char *id, unsigned *ret_card,
		unsigned *ret_number, struct error *err);

/*
 * The two steps of slice_parse(), for devices with another number of parts: find the card, and where in `id` the number begins.
 * slices_parse_number() accepts a number only as slice_format() writes it, without sign or leading zero.
 */
int slices_find_card(const struct slices *slices, const char *id, unsigned *ret_card,
		     const char **ret_number, struct error *err);
bool slices_parse_number(const char *text, unsigned below, unsigned *ret);

struct slice_set {
	struct slots card[SLICES_MAX_CARDS];
};

/* Gives the name of the set's first slice. False if the set is empty. */
bool slice_set_first(const struct slices *slices, const struct slice_set *set,
		     char ret_id[SLICE_ID_MAX]);

/* Parses names of slices. Returns -EINVAL if a name belongs to none of these slices, or occurs twice. */
int slice_set_parse(const struct slices *slices, char *const *ids, size_t count,
		    struct slice_set *ret, struct error *err);

/* The part of a card's memory and time that a container gets for its slices of the card. */
struct slice_share {
	uint64_t memory_bytes; /* whole MiB, rounded down so that all slices fit the card */
	double cores_pct;      /* rounded down to two decimals */
	double limit_pct;      /* cores_pct if the limit is hard, else 100 */
};

struct slice_share slices_share(unsigned per_card, unsigned count, uint64_t card_bytes,
				bool is_hard);

/*
 * Chooses `size` available slices, with all of `must`, on as few cards as possible. Prefers cards with few available slices, so
 * that whole cards stay free. Returns -EINVAL if fewer than `size` slices are available, if a slice of `must` is not available,
 * or if `must` has more than `size`.
 */
int slices_prefer(const struct slices *slices, const struct slice_set *available,
		  const struct slice_set *must, unsigned size, struct slice_set *ret,
		  struct error *err);
/* Like slices_prefer(), but first takes the same number of slices, if available, from each card in `cards` (bit i: card i). */
int slices_prefer_on(const struct slices *slices, const struct slice_set *available,
		     const struct slice_set *must, unsigned size, uint64_t cards,
		     struct slice_set *ret, struct error *err);
