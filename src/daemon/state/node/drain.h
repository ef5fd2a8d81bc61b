/*
 * When a process dies, its memory no longer counts in the tenant's quota, but the driver may free it only later. Until then
 * the memory is draining: it counts as taken on the card.
 *
 * Draining ends after DRAIN_MAX_NS, or when a census (a reading of NVML) confirms it: the process is off NVML's list, and
 * either the card's used memory fell, or the used memory of no listed process is no larger than before the death. Main thread
 * only.
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
 * Call when process `pid` has ended with `bytes` on the card; 0 is ignored. was_listed: the last census had it on NVML's
 * list.
 */
void drain_add(struct node *node, struct card *card, int pid, uint64_t bytes, bool was_listed);
uint64_t drain_bytes(const struct card *card);
/* Returns true if memory of process `pid` is draining on the card. */
bool drain_has(const struct card *card, int pid);
/* Ends the draining of memory that was freed by census `seen` (NULL: no new census), or has drained for DRAIN_MAX_NS. */
void drain_update(struct node *node, struct card *card, const struct census_card *seen);
void drain_free_all(struct card *card);
