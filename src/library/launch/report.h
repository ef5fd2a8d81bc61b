/*
 * Reports to the daemon, through this process's slot: whether each device is busy, how long it was busy, and how much work is
 * in flight. The helper thread reports after each poll. A thread that has waited for all the work can report at once.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "library/sys/sys.h"

#define REPORT_IDLE_NS (50 * NS_PER_MS) /* time to the next poll while nothing is in flight */

/* Devices (bits) by the state of their lease. */
struct report_leases {
	/* The lease has ended, or launches wait for tokens. Another tenant may wait for the work in flight, so poll often. */
	uint32_t closing;
	/* The lease is LEASE_FREE, and no thread waits for the device's work. */
	uint32_t in_free_run;
	bool is_any; /* the lease of some device is not LEASE_FREE */
};

struct report {
	struct report_leases leases;
	uint32_t count;
	uint32_t busy;  /* devices (bits) with work in flight */
	bool any_busy;  /* a device is busy, or a thread waits for in-flight work */
	bool any_waits; /* a thread waits at the gate */
	/* Time to the next poll while nothing is in flight. Less than REPORT_IDLE_NS if the daemon must be told sooner. */
	uint64_t idle_ns;
};

/* For the helper thread: polls the work in flight and updates the slot. */
struct report report_devices(uint64_t now_ns);
uint64_t report_next_poll_ns(const struct report *report, bool was_woken);

/*
 * Call after a wait for work, and after inflight_note_end(). If nothing is in flight, counts the busy time and clears `busy`.
 * The helper thread would do so up to POLL_AHEAD_NS later, and the tenant would pay for that time. Thread safe.
 */
void report_end_of_work(int index);

/* Without a daemon: true if the tenant's cap on GPU time now allows work on the device. Thread safe. */
bool report_local_cap_allows(int index);

/* Call in a forked child. */
void report_reset(void);
