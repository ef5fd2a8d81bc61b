/*
 * A stamp is a point in time that a later run of the daemon can compare. Stamps of one boot are compared by CLOCK_BOOTTIME.
 * Across a reboot CLOCK_REALTIME is compared; that clock may have been set, so a time in the future counts as now.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "daemon/util/json.h"

#define STAMP_BOOT_MAX 40

struct stamp {
	char boot[STAMP_BOOT_MAX]; /* the kernel's boot_id; "" if unreadable */
	uint64_t boot_ns;          /* CLOCK_BOOTTIME */
	uint64_t wall_ns;          /* CLOCK_REALTIME */
};

struct stamp stamp_now(void);
bool stamp_is_same_boot(const struct stamp *a, const struct stamp *b);
/* Returns now - then in ns, at least 0. Pure. */
uint64_t stamp_passed_ns(const struct stamp *then, const struct stamp *now);

json_t *stamp_to_json(const struct stamp *stamp);
int stamp_from_json(const json_t *json, struct stamp *ret, struct error *err);
