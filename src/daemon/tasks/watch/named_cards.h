/*
 * Finds the cards that a program uses according to its CUDA_VISIBLE_DEVICES, because free memory on other cards does not help
 * the program. Pure.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/*
 * Returns the cards (bit mask) of `visible` that `list` names, by CUDA's rules: numbers count visible cards from 0; a UUID may
 * be cut to a unique prefix; the first wrong entry ends the list. Returns all of `visible` if none is named, or if `list` has
 * numbers but has_order is false (the cards are of several models, which CUDA sorts by speed). `uuid` has the UUIDs of all
 * `count` cards, "GPU-..." or "MIG-...".
 */
uint64_t named_cards(const char *list, const char *const *uuid, unsigned count, uint64_t visible,
		     bool has_order);

/* Returns the value of `name`, which includes the "=", in an environment of `length` bytes; NULL if not set. */
const char *named_in_environment(const char *environment, int length, const char *name);
