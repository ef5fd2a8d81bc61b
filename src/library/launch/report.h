/*
 * Reports to the daemon, through this process's slot: whether each device is busy, how long it was busy, and how much work is
 * in flight. The helper thread reports after each of its polls. A thread that has waited for all the work can report at once.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "library/sys/sys.h"

#define REPORT_IDLE_NS (50 * NS_PER_MS) /* time to the next poll while nothing is in flight */

/* Devices (bits) by the state of their lease. */
struct report_leases {
	/*
	 * The lease has ended on these devices, or launches wait for tokens. Another tenant may wait until the work in flight
	 * has ended, so poll often.
	 */
	uint32_t closing;
	/* The lease is LEASE_FREE, and no thread waits for the device's work in flight. */
	uint32_t in_free_run;
	bool is_any; /* the lease of some device is not LEASE_FREE */
};

struct report {
	struct report_leases leases;
	uint32_t count;
	uint32_t busy;  /* devices (bits) with work in flight */
	bool any_busy;  /* a device is busy, or a thread waits for in-flight work */
	bool any_waits; /* a thread waits at the gate */
	/*
	 * Time to the next poll while nothing is in flight: REPORT_IDLE_NS, or less if the daemon must be told sooner that a
	 * device is idle.
	 */
	uint64_t idle_ns;
};

/* Polls the work in flight and updates the slot. For the helper thread. */
struct report report_devices(uint64_t now_ns);
/* Returns the time until the next poll. For the helper thread. */
uint64_t report_next_poll_ns(const struct report *report, bool was_woken);

/*
 * Call after a wait for work on device `index`, and after inflight_note_end(): if nothing is in flight, counts the busy time
 * until now and clears `busy`. Otherwise the helper thread would do so up to POLL_AHEAD_NS later, and the tenant would pay for
 * that time. Thread safe.
 */
void report_end_of_work(int index);

/* For use without a daemon: true if the tenant's cap on GPU time now allows work on device `index`. Thread safe. */
bool report_local_cap_allows(int index);

/* Call in a forked child: forgets the parent's totals. */
void report_reset(void);
