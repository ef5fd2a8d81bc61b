/* Reads and checks the "devices" of a request, and chooses devices if none are named. Main thread only. */
#pragma once

#include "abi/shm/region.h"
#include "daemon/state/node/node.h"
#include "daemon/util/json.h"
#include "policy/memory/promise.h"

/* One entry of a request's "devices". */
struct device_request {
	struct card *card; /* NULL if no card is named */
	struct promise_request terms;
};

/*
 * Fills list with at most REGION_MAX_DEVICES entries; no card is named twice. Returns the number of entries, 0 if the request
 * has no "devices", or -errno with what would be right.
 */
int request_read_devices(struct node *node, const json_t *request,
			 struct device_request list[REGION_MAX_DEVICES], struct error *err);

/*
 * Like request_read_devices(), for a new tenant: an entry that names no card gets one that is chosen, and a request without
 * "devices" counts as one such entry. Returns -ENODEV if too few cards take new tenants.
 */
int request_choose_devices(struct node *node, const json_t *request,
			   struct device_request list[REGION_MAX_DEVICES], struct error *err);
