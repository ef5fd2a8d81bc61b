/*
 * A process without a daemon. The test itself sets what src/library/state/process_state.c, process.c, helper.c and report.c
 * would. The region lies in memory that forked children share, so a test can have several "processes" of a tenant.
 */
#pragma once

#include "library/state/process_state.h"

/* Values that the daemon would write. */
extern struct region_control *fake_control;
extern struct region_report *fake_report;

/* Makes a fresh region with `slots` slots and one device, lease FREE, no quota; slot 0 is ours. */
void fake_process_start(uint32_t slots);

/* From now on this process has slot `slot`. */
void fake_process_take_slot(uint32_t slot);

/* Clears a slot, as the daemon does for a dead process. */
void fake_process_clear_slot(uint32_t slot);

void fake_process_set_lease(enum lease_state state);
/*
 * Gives the turn (policy/lease/turns.h) to a process: its slot + 1; 0: all may launch. Threads that wait for the lease are
 * woken; its state stays.
 */
void fake_process_set_turn(uint32_t turn);

/* Bytes used on device 0, summed over all slots. */
uint64_t fake_process_used(void);

/* The local cap's answer while the daemon is lost; true at first. */
extern _Atomic bool fake_local_cap_allows;

/* Times that the helper was woken. */
extern _Atomic uint32_t fake_wakes;
extern uint64_t fake_dropped_key; /* of the last fd_exchange_delete() */
