/*
 * Which cards a program will use, by its CUDA_VISIBLE_DEVICES. A container may see several cards
 * while a program named only one; free memory on the other cards does not help that program. Pure.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/*
 * Returns the cards (bit mask) of `visible` that `list` names, by CUDA's rules: numbers count the
 * visible cards from 0, a UUID may be abbreviated if the prefix is unique, and the first entry that
 * names no card ends the list. Returns all of `visible` if the list names no card. Also returns all
 * if the list uses numbers and has_order is false: the visible cards are then of several models,
 * which CUDA sorts by speed. `uuid`: the UUIDs of all `count` cards, "GPU-..." or "MIG-...".
 */
uint64_t named_cards(const char *list, const char *const *uuid, unsigned count, uint64_t visible,
		     bool has_order);

/*
 * Returns the value of `name`, which includes the "=" ("CUDA_VISIBLE_DEVICES="), in an environment
 * of `length` bytes; NULL if it is not set.
 */
const char *named_in_environment(const char *environment, int length, const char *name);
