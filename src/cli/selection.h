/*
 * Selects devices of the daemon: --gpu selects among the devices that CUDA_VISIBLE_DEVICES selects among all.
 * Pure.
 */
#pragma once

#include <jansson.h>
#include <stddef.h>

#include "base/error.h"
#include "base/parse.h"

struct selection {
	size_t count;
	const json_t *device[PARSE_DEVICES_MAX]; /* borrowed from the caller's list */
};

/*
 * Selects devices by --gpu and CUDA_VISIBLE_DEVICES. `devices` is the list "devices" in a reply to `hello` or `list`.
 * `visible` is the value of CUDA_VISIBLE_DEVICES, or NULL if unset. As in CUDA, reading stops at the first entry that matches
 * no device; numbers are indexes in the daemon's order. `wanted` is --gpu, whose indexes count within `visible`; if NULL, the
 * first visible device is selected. Both accept a UUID in upper or lower case, whole or a unique prefix. Returns 0 or
 * -ENODEV; err then lists the available devices.
 */
int selection_make(const json_t *devices, const char *visible, const struct parse_devices *wanted,
		   struct selection *ret_selection, struct error *err);

/* Selects all devices, in the daemon's order. */
void selection_all(const json_t *devices, struct selection *ret);
/*
 * Selects the wanted devices in `among`. `visible` is the value of CUDA_VISIBLE_DEVICES that limited `among`, for the error
 * message; NULL if there was no limit.
 */
int selection_choose(const struct selection *among, const struct parse_devices *wanted,
		     const char *visible, struct selection *ret_chosen, struct error *err);

/* Return the index and the UUID of a device; 0 and "" if the daemon omitted them. */
json_int_t device_index(const json_t *device);
const char *device_uuid(const json_t *device);
