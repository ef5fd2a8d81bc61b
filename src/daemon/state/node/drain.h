/*
 * When a process dies, its memory no longer counts in the tenant's quota, but the driver may free it only later. Until then the
 * memory is draining: it counts as taken on the card.
 *
 * Draining ends after DRAIN_MAX_NS, or when a census shows that the memory is free. For that, the process must be off NVML's
 * list. Also the card's used memory must have fallen, or the used memory that no listed process holds must not have grown since
 * the death. Main thread only.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define DRAIN_MAX_NS UINT64_C(2000000000)
#define DRAIN_LOOK_NS UINT64_C(20000000) /* interval between censuses while memory drains */

struct node;
struct card;
struct census_card;

/*
 * Begins to count `bytes` (0: nothing) as draining. Call when process `pid` has ended; it had that much memory on the card.
 * was_listed: the last census had the process on NVML's list.
 */
void drain_add(struct node *node, struct card *card, int pid, uint64_t bytes, bool was_listed);
uint64_t drain_bytes(const struct card *card);
bool drain_has(const struct card *card, int pid);
/* Ends the draining of memory that census `seen` (NULL: no new census) shows as freed, or that has drained for DRAIN_MAX_NS. */
void drain_update(struct node *node, struct card *card, const struct census_card *seen);
void drain_free_all(struct card *card);
