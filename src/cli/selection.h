/*
 * Which of the daemon's devices are meant: --gpu within CUDA_VISIBLE_DEVICES within what there is.
 * Pure.
 */
#pragma once

#include <jansson.h>
#include <stddef.h>

#include "base/error.h"
#include "base/parse.h"

struct selection {
	size_t count;
	const json_t *device[PARSE_DEVICES_MAX]; /* of the list that was given: not ours */
};

/*
 * devices: the "devices" of a hello or list reply. visible: CUDA_VISIBLE_DEVICES, NULL when unset; it
 * is read as CUDA reads it (up to the first entry that names nothing), its numbers count in the
 * daemon's order. Both take a UUID in either case, whole or as many of its first characters as name
 * one GPU. wanted: --gpu, NULL when not given, which means the first
 * visible one; its indexes count within `visible`. -ENODEV names what there is.
 */
int selection_make(const json_t *devices, const char *visible, const struct parse_devices *wanted,
		   struct selection *ret_selection, struct error *err);

/* All of them, in the daemon's order. */
void selection_all(const json_t *devices, struct selection *ret);
/*
 * Those of `among` that are wanted. visible: the CUDA_VISIBLE_DEVICES that `among` is limited to, for the error;
 * else NULL.
 */
int selection_choose(const struct selection *among, const struct parse_devices *wanted,
		     const char *visible, struct selection *ret_chosen, struct error *err);

/* index and uuid of one device; 0 and "" where the daemon left them out. */
json_int_t device_index(const json_t *device);
const char *device_uuid(const json_t *device);
