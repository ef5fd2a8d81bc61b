/* Nodes to place on: the simulated GPU's layouts, and random use of them. */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "policy/placement/choose_cards.h"

#define LAYOUT_COUNT 4
extern const char *const layout_names[LAYOUT_COUNT];

/* The cards of a layout or other description, nothing of them in use, ten slots each. */
struct place_node layout_node(const char *name);

/* Puts the node's cards into random use: some free, some used in part or wholly, a few sick or cordoned. */
void layout_disturb(struct place_node *node, uint64_t *random);

/* splitmix64: any seed will do; both ends included. */
uint64_t random_between(uint64_t *state, uint64_t low, uint64_t high);

#define MIB (UINT64_C(1) << 20)
#define GIB (UINT64_C(1) << 30)
