/*
 * The ledger counts the device memory that this tenant holds against its quota or, if the tenant waits for memory
 * (reserve_wait.h), against the part of the quota that it was granted. The slots in the report are the only truth. There is no
 * separate total, which would go wrong when a process is killed.
 *
 * A reservation, in the process's own slot:
 *   1. tentative += n                       (seq_cst: of two processes that do this at the same time, one sees the other)
 *   2. sum used and tentative of all slots
 *   3. If the sum fits: used += n, tentative -= n.
 *      If it does not fit even without the others' tentative bytes: tentative -= n, refused.
 *      If it does not fit only because of the others' tentative bytes: the process with the lower slot keeps its tentative
 *      bytes and checks again when the others are decided; the one with the higher slot withdraws its own and starts again.
 *      So no reservation is refused because of memory that another process asked for and did not get.
 * Reserved bytes count from then on. If the driver call fails, they are given back.
 *
 * Memory that no call names counts too: the daemon measures it and writes it into the slots (see region.h). These values
 * are at most two NVML queries old.
 *
 * A process may be killed between any two of these steps; then the daemon zeroes its whole slot.
 * Thread safe; a process decides one reservation at a time.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "abi/shm/region.h"

/*
 * Reserves `bytes` of the tenant's quota on device `index` (process_device_index(), or REGION_HOST). Returns 0, or
 * -ENOMEM if the bytes do not fit. count_denial says whether a refusal is counted; if something can be trimmed,
 * first call without it.
 */
int ledger_reserve(int index, uint64_t bytes, bool count_denial);

/* Gives `bytes` back. The count never goes below zero. */
void ledger_release(int index, uint64_t bytes);

/* Counts a refusal that ledger_reserve() did not count because count_denial was false. */
void ledger_count_denial(int index);

/*
 * As ledger_reserve() and ledger_release(), but also records the bytes as contexts', for `ps` and for the daemon's
 * measurement. A refusal is not counted.
 */
int ledger_reserve_context(int index, uint64_t bytes);
void ledger_release_context(int index, uint64_t bytes);

/*
 * Memory that no call names, as this process measured it around a call (measured.h). The memory counts at once; the daemon soon
 * queries NVML and corrects the value. ledger_make_fresh() turns bytes that are already reserved into such memory.
 * ledger_add_fresh() adds memory without asking the quota, since the call cannot be undone. ledger_release_unnamed() gives back
 * memory that is free on the GPU again.
 */
void ledger_make_fresh(int index, uint64_t bytes);
void ledger_add_fresh(int index, uint64_t bytes);
void ledger_release_unnamed(int index, uint64_t bytes);

/*
 * Call before a final refusal. If memory was measured that the daemon has not seen yet, waits for the daemon's next NVML query,
 * for at most 5 s, and returns true; then the caller tries again. Otherwise returns false.
 */
bool ledger_wait_for_look(int index);

/*
 * From now on NVML may show less memory for this process than the process is charged (managed and shared memory,
 * pools, graphs, arrays). So the daemon does not use the difference any more.
 */
void ledger_mark_unsure(int index);

/* Adds or subtracts bytes without asking the quota, for something that the driver has already done. */
void ledger_adjust(int index, int64_t bytes);

/* The memory that the whole tenant holds on device `index`, and its quota (UINT64_MAX if none). */
uint64_t ledger_used(int index);
uint64_t ledger_quota(int index);

/*
 * Makes new_slot the slot that counts: while no reservation is being decided, copies what this process holds from old_slot and
 * then calls publish(). Used when a restarted daemon hands out a new report.
 */
void ledger_move(struct region_slot *old_slot, struct region_slot *new_slot,
		 void (*publish)(void *), void *context);
