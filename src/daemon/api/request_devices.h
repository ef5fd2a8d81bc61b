/* The "devices" of a request: read, checked, and chosen where none is named. Main thread only. */
#pragma once

#include "abi/shm/region.h"
#include "daemon/state/node/node.h"
#include "daemon/util/json.h"
#include "policy/memory/promise.h"

/* One entry of a request's "devices". */
struct device_request {
	struct card *card; /* NULL: none named */
	struct promise_request terms;
};

/*
 * Fills list with at most REGION_MAX_DEVICES entries, none of whose cards is named twice. Returns their
 * number, 0 when the request has no "devices"; -errno with what would be right.
 */
int request_read_devices(struct node *node, const json_t *request,
			 struct device_request list[REGION_MAX_DEVICES], struct error *err);

/*
 * The same of a new tenant, with a card for each entry, one where the request names none. -ENODEV: there are too few that take
 * new tenants.
 */
int request_choose_devices(struct node *node, const json_t *request,
			   struct device_request list[REGION_MAX_DEVICES], struct error *err);
