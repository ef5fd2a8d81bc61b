/*
 * Which cards a program will use, by its CUDA_VISIBLE_DEVICES: of several that a container could open it may have
 * named one, and room on another is of no use to it. Pure.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/*
 * Of the cards in `visible` (bits) those that `list` names, as CUDA reads it: numbers count the visible cards, a
 * UUID may be cut short while it is one card's alone, and the first entry that names nothing ends it. Where it names none
 * at all, or names by numbers that can't be told (has_order false: the cards are of several models, which CUDA
 * sorts by their speed), all that are visible. uuid: `count` texts, "GPU-..." or "MIG-...".
 */
uint64_t named_cards(const char *list, const char *const *uuid, unsigned count, uint64_t visible,
		     bool has_order);

/* The value of `name` ("CUDA_VISIBLE_DEVICES=") in an environment of `length` bytes; NULL: it has none. */
const char *named_in_environment(const char *environment, int length, const char *name);
