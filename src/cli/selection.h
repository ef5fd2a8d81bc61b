/* Selects devices of the daemon: CUDA_VISIBLE_DEVICES limits the devices, and --gpu chooses among these. Pure. */
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
 * Selects devices. A UUID may be shortened to a unique prefix; upper and lower case do not differ.
 *
 *   devices  the list "devices" in a reply to `hello` or `list`
 *   visible  CUDA_VISIBLE_DEVICES, NULL if unset. Its numbers are indexes in the daemon's order. As in CUDA, the first entry
 *            without a device ends the list.
 *   wanted   --gpu. Its indexes count within `visible`. NULL selects the first visible device.
 *
 * Returns 0; -ENODEV if a device does not exist (the error lists the available devices); -EINVAL if `wanted` names one twice.
 */
int selection_make(const json_t *devices, const char *visible, const struct parse_devices *wanted,
		   struct selection *ret_selection, struct error *err);

void selection_all(const json_t *devices, struct selection *ret);
/* Selects the wanted devices in `among`. `visible` is the CUDA_VISIBLE_DEVICES that limited `among`, for errors; or NULL. */
int selection_choose(const struct selection *among, const struct parse_devices *wanted,
		     const char *visible, struct selection *ret_chosen, struct error *err);

/* Return the index and the UUID of a device; 0 and "" if the daemon omitted them. */
json_int_t device_index(const json_t *device);
const char *device_uuid(const json_t *device);
