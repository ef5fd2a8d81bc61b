/*
 * The report of in-flight work, by the helper thread. It sees work end, and tells the daemon through this process's slot
 * whether a device is busy, for how long it was, and how much is in flight.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "library/sys/sys.h"

#define REPORT_IDLE_NS (50 * NS_PER_MS) /* to the next look while nothing is in flight */

/* Devices (bits) by their leases. */
struct report_leases {
	uint32_t closing; /* nothing new will start: work runs dry, and its end is waited for, or measured */
	uint32_t in_free_run; /* and no thread waits for depth */
	bool is_any;          /* but free run */
};

/* One look at all devices. */
struct report {
	struct report_leases leases;
	uint32_t count;   /* of devices */
	uint32_t busy;    /* devices (bits) with work in flight */
	bool any_busy;    /* or a thread waits for own work */
	bool any_waits;   /* a thread is held at the gate */
	uint64_t idle_ns; /* until an idle lease is to be told of */
};

/* Helper thread. Looks at the work in flight, and tells. */
struct report report_devices(uint64_t now_ns);
/* Helper thread, later in the same look: how long until the next one. */
uint64_t report_again_ns(const struct report *report, bool was_woken);

/* While the daemon is lost: may device `index` work, by the tenant's own cap? Thread safe. */
bool report_local_cap_allows(int index);

/* In a forked child. */
void report_reset(void);
