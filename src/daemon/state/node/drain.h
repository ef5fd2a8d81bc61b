/*
 * Memory that dead processes held: their tenants have it back at once, but the driver may free it
 * later. Until NVML confirms (the process is off its list and the card's figure fell, or the list explains
 * that figure as well as it did before), or DRAIN_MAX_NS have passed, it counts as draining towards the card. Main thread only.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define DRAIN_MAX_NS UINT64_C(2000000000)
#define DRAIN_LOOK_NS UINT64_C(20000000) /* a census so often while something drains */

struct node;
struct card;
struct census_card;

/* bytes may be 0: nothing happens. was_listed: the last census had the process on NVML's list. */
void drain_add(struct node *node, struct card *card, int pid, uint64_t bytes, bool was_listed);
uint64_t drain_bytes(const struct card *card);
/* Whether it is a process's whose memory drains. */
bool drain_has(const struct card *card, int pid);
/* Looks whether the last census confirms; also drops what is too old. NULL: no census came. */
void drain_update(struct node *node, struct card *card, const struct census_card *seen);
void drain_free_all(struct card *card);
