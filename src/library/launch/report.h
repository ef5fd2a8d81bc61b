/*
 * The helper thread's report on in-flight work. The helper sees work end. It tells the daemon, through this
 * process's slot, whether a device is busy, how long it was busy, and how much is in flight.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "library/sys/sys.h"

#define REPORT_IDLE_NS (50 * NS_PER_MS) /* time to the next poll while nothing is in flight */

/* Sets of devices (bits), by the states of their leases. */
struct report_leases {
	/*
	 * Devices on which no new work starts. Another tenant may wait for the end of the work in flight, or that end is
	 * measured. So poll often.
	 */
	uint32_t closing;
	/* Devices in free run where no thread waits for depth. */
	uint32_t in_free_run;
	bool is_any; /* any device is not in free run */
};

/* The result of one poll of all devices. */
struct report {
	struct report_leases leases;
	uint32_t count;   /* number of devices */
	uint32_t busy;    /* devices (bits) with work in flight */
	bool any_busy;    /* a device is busy, or a thread waits for the process's own work */
	bool any_waits;   /* a thread is held at the gate */
	uint64_t idle_ns; /* time until an idle lease must be reported */
};

/* Helper thread. Polls the work in flight and updates the slot. */
struct report report_devices(uint64_t now_ns);
/* Helper thread, at the end of a poll: returns the time until the next one. */
uint64_t report_again_ns(const struct report *report, bool was_woken);

/* While the daemon is lost: returns true if the tenant's own cap lets device `index` work. Thread safe. */
bool report_local_cap_allows(int index);

/* Call in a forked child: forgets the state of the parent. */
void report_reset(void);
