/*
 * The ledger counts the device memory that this tenant holds. The limit is the tenant's quota or, if the tenant waits for
 * memory (reserve_wait.h), the part of the quota that it was granted. The slots in the report are the only truth. There is no
 * separate total, which would go wrong when a process is killed.
 *
 * A reservation, in the process's own slot:
 *   1. tentative += n                       (seq_cst: of two processes that do this at the same time, one sees the other)
 *   2. sum used and tentative of all slots
 *   3. If the sum fits: used += n, tentative -= n.
 *      If it does not fit even without the others' tentative bytes: tentative -= n, and the reservation is refused.
 *      If it fits only without the others' tentative bytes: the process with the lowest slot keeps its own tentative bytes,
 *      and checks again soon. The others withdraw theirs, and start again. So no reservation is refused because of memory
 *      that another process asked for and did not get. But a reservation that is still undecided after 100 ms is refused, for
 *      example if the other process is stopped.
 * Reserved bytes count from then on. They are given back if the driver call fails.
 *
 * Memory that no call names (code, local memory) counts too: the daemon measures it and writes it into the slots (region.h).
 * These values are at most two NVML queries old.
 *
 * If a process is killed between any two steps, the daemon zeroes its whole slot. Thread safe; a process decides one
 * reservation at a time.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "abi/shm/region.h"

/*
 * Reserves on device `index` (of the tenant's list, or REGION_HOST). Returns 0, or -ENOMEM if the bytes do not fit or that is
 * undecided after 100 ms (step 3). count_denial: count a refusal. A caller that can free something and try again passes false
 * at first.
 */
int ledger_reserve(int index, uint64_t bytes, bool count_denial);

/* The count never goes below zero. */
void ledger_release(int index, uint64_t bytes);

/* Counts a refusal for which count_denial was false. */
void ledger_count_denial(int index);

/* Also count the bytes as a context's, for `allot ps` and the daemon's measurement. A refusal is not counted. */
int ledger_reserve_context(int index, uint64_t bytes);
void ledger_release_context(int index, uint64_t bytes);

/*
 * For memory that no call names (code, local memory). This process measures it (measured.h), and the daemon corrects the value
 * later. ledger_make_fresh() turns reserved bytes into such memory. ledger_add_fresh() adds such memory even beyond the quota.
 * ledger_release_unnamed() subtracts memory that is free again.
 */
void ledger_make_fresh(int index, uint64_t bytes);
void ledger_add_fresh(int index, uint64_t bytes);
void ledger_release_unnamed(int index, uint64_t bytes);

/* Call before a final refusal. If the daemon must still check a measurement, waits up to 5 s and returns true: try again. */
bool ledger_wait_for_nvml(int index);

/*
 * Call when NVML may show less memory for this process than it is charged (managed and shared memory, pools, graphs, arrays).
 * Sets region_slot_device.unsure, which only an older daemon reads.
 */
void ledger_mark_unsure(int index);

/* Ignores the quota, because the driver has already acted. */
void ledger_adjust(int index, int64_t bytes);

/* Of the whole tenant on device `index`. Without a quota, UINT64_MAX. */
uint64_t ledger_used(int index);
uint64_t ledger_quota(int index);

/* Moves to the slot in a restarted daemon's report: copies the memory, then calls publish(). No reservation runs meanwhile. */
void ledger_move(struct region_slot *old_slot, struct region_slot *new_slot,
		 void (*publish)(void *), void *context);
