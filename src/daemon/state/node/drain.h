/*
 * Memory of dead processes. A dead process no longer uses its tenant's quota, but the driver may
 * free the memory later. Until then the memory counts as draining: it is still taken on the card.
 *
 * Draining ends after DRAIN_MAX_NS, or earlier when a census by NVML confirms it. That needs two
 * things: the process is off NVML's list; and the card's used memory fell, or its unlisted part
 * (held by no process on that list) is no larger than before the death. Main thread only.
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
 * Call when process `pid` has ended: its `bytes` on the card drain. was_listed: the last census had
 * the process on NVML's list. Does nothing if `bytes` is 0.
 */
void drain_add(struct node *node, struct card *card, int pid, uint64_t bytes, bool was_listed);
uint64_t drain_bytes(const struct card *card);
/* Whether memory of process `pid` is draining on the card. */
bool drain_has(const struct card *card, int pid);
/*
 * Ends the draining of memory that the driver has freed, by census `seen`, and of memory that has
 * drained for DRAIN_MAX_NS. `seen` is NULL if there was no new census.
 */
void drain_update(struct node *node, struct card *card, const struct census_card *seen);
void drain_free_all(struct card *card);
