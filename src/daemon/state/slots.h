/*
 * A slot is one of the numbered parts of a card: a scheduler sees a card as devices "<UUID>-<n>", where n is the slot. Two
 * claims never share a slot. The functions change only the set that they are given.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define SLOTS_MAX 256 /* slots of a card, numbered from 0 */

struct slots {
	uint64_t bits[SLOTS_MAX / 64];
};

/* `slot` must be less than SLOTS_MAX. */
static inline void slots_add(struct slots *slots, unsigned slot)
{
	slots->bits[slot / 64] |= UINT64_C(1) << slot % 64;
}

static inline void slots_remove(struct slots *slots, unsigned slot)
{
	slots->bits[slot / 64] &= ~(UINT64_C(1) << slot % 64);
}

static inline bool slots_has(const struct slots *slots, unsigned slot)
{
	return slots->bits[slot / 64] >> slot % 64 & 1;
}

static inline unsigned slots_count(const struct slots *slots)
{
	unsigned count = 0;
	for (unsigned i = 0; i < SLOTS_MAX / 64; i++)
		count += (unsigned)__builtin_popcountll(slots->bits[i]);
	return count;
}

/* Returns the lowest slot in both sets; negative if there is none. */
static inline int slots_first_common(const struct slots *a, const struct slots *b)
{
	for (unsigned i = 0; i < SLOTS_MAX / 64; i++)
		if (a->bits[i] & b->bits[i])
			return (int)(i * 64) + __builtin_ctzll(a->bits[i] & b->bits[i]);
	return -1;
}
