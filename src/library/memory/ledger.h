/*
 * The ledger: device memory that this tenant holds, against its quota, or, where it waits for memory
 * (admission.h), what it was granted of that. The slots in the report are
 * the only truth; there is no total beside them to go wrong when a process is killed.
 *
 * A reservation, in the process's own slot:
 *   1. tentative += n                       (seq_cst: of two that decide at once, one sees the other)
 *   2. sum used and tentative of all slots
 *   3. fits: used += n, tentative -= n. Over, and over even without the others' tentative bytes:
 *      tentative -= n, refused. Over only because of them: the lower slot keeps its tentative bytes
 *      and looks again when they are decided; the higher withdraws its own and tries anew. So
 *      nobody is refused for memory that another asked for and did not get.
 * What was reserved counts from then on; a failed driver call gives it back.
 *
 * What no call names is counted as well: the daemon measures it and writes it into the slots (see
 * region.h), two looks old at most.
 *
 * A process killed between any two of these leaves a slot that the daemon zeroes as a whole.
 * Thread safe; one reservation of a process is decided at a time.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "abi/shm/region.h"

/*
 * Takes `bytes` of the tenant's quota on device `index` (process_device_index(), or REGION_HOST). 0, or -ENOMEM when
 * they do not fit. `denied` counts a refusal; try first without where something can be trimmed.
 */
int ledger_reserve(int index, uint64_t bytes, bool count_denial);

/* Gives `bytes` back; never below zero. */
void ledger_release(int index, uint64_t bytes);

/* One that a reservation without count_denial did not count. */
void ledger_count_denial(int index);

/*
 * As ledger_reserve() and ledger_release(), and marks the bytes as contexts' for `ps` and the daemon's
 * measurement. A refusal is not counted.
 */
int ledger_reserve_context(int index, uint64_t bytes);
void ledger_release_context(int index, uint64_t bytes);

/*
 * What no call names, as this process measured it around a call (measured.h). Counted from then on; the
 * daemon looks soon, and corrects it. make: bytes reserved before become such; add: without asking the
 * quota, for what can't be undone; release: the card has them back.
 */
void ledger_make_fresh(int index, uint64_t bytes);
void ledger_add_fresh(int index, uint64_t bytes);
void ledger_release_unnamed(int index, uint64_t bytes);

/*
 * Before the last word of a refusal: waits for the daemon's look where something was measured that it has
 * not seen yet, 5 s at most. True: try again. False: there is no such thing.
 */
bool ledger_wait_for_look(int index);

/*
 * From now on the process may hold what NVML tells less of than is charged here: managed and shared memory,
 * pools, graphs, arrays. The daemon learns nothing from the difference then.
 */
void ledger_mark_unsure(int index);

/* Adds or takes bytes without asking the quota: what the driver has done cannot be refused. */
void ledger_adjust(int index, int64_t bytes);

/* What the whole tenant holds on device `index`, and its quota (UINT64_MAX: none). */
uint64_t ledger_used(int index);
uint64_t ledger_quota(int index);

/*
 * Makes `new_slot` the truth: copies what this process holds from the old slot, while no reservation
 * is being decided, then calls publish(). Used when a restarted daemon hands out a fresh report.
 */
void ledger_move(struct region_slot *old_slot, struct region_slot *new_slot,
		 void (*publish)(void *), void *context);

/* In a forked child: no other thread decides anything. */
void ledger_reset(void);
