/*
 * A guest without a daemon: what src/library/state/guest.c, process.c, helper.c and report.c give the rest of the library, by
 * hand. The region lies in memory that forked children share, so several "processes" of a tenant can
 * be played.
 */
#ifndef ALLOT_TESTS_UNIT_LIBRARY_FAKE_GUEST_H
#define ALLOT_TESTS_UNIT_LIBRARY_FAKE_GUEST_H

#include "library/state/guest.h"

/* What the daemon would write. */
extern struct region_control *fake_control;
extern struct region_report *fake_report;

/* Makes a fresh region with `slots` slots and one device, lease FREE, no quota; slot 0 is ours. */
void fake_guest_start(uint32_t slots);

/* From now on this process has slot `slot`. */
void fake_guest_take_slot(uint32_t slot);

/* As the daemon does it for a dead process. */
void fake_guest_clear_slot(uint32_t slot);

void fake_guest_set_lease(enum lease_state state);
/* The turn that a lease is: slot + 1, or 0. The word keeps its state, and goes on. */
void fake_guest_set_turn(uint32_t turn);

/* Sum over all slots of device 0. */
uint64_t fake_guest_used(void);

/* The local cap's answer while the daemon is lost; true at first. */
extern _Atomic bool fake_local_cap_allows;

/* Times that the helper was woken. */
extern _Atomic uint32_t fake_wakes;

#endif
