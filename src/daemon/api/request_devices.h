/* Reads a tenant's terms from a request, and chooses cards for "devices" without one. Main thread only. */
#pragma once

#include "abi/shm/region.h"
#include "daemon/state/node/node.h"
#include "daemon/state/tenant.h"
#include "daemon/util/json.h"
#include "policy/memory/promise.h"

struct device_request {
	struct card *card; /* NULL: the entry names no card */
	struct promise_request terms;
};

/* Reads "index". Returns 1 if the member is there, 0 if not, or -errno. */
int request_read_index(struct node *node, const json_t *json, struct card **ret, struct error *err);

/*
 * Fills the list from the request; no card is in the list twice. Returns the number of entries, 0 if the request has no
 * "devices", or -errno with the reason.
 */
int request_read_devices(struct node *node, const json_t *request,
			 struct device_request list[REGION_MAX_DEVICES], struct error *err);

/*
 * For a new tenant: like request_read_devices(), but also chooses a card for each entry without one. A request without
 * "devices" counts as one entry without a card. Returns -ENODEV if too few cards take new tenants.
 */
int request_choose_devices(struct node *node, const json_t *request,
			   struct device_request list[REGION_MAX_DEVICES], struct error *err);

/* Read a term of the tenant. Return 1 if the request has the member, 0 if not (*ret stays), or -EINVAL if it is not valid. */
int request_read_priority(const json_t *request, int *ret, struct error *err);
int request_read_on_full(const json_t *request, enum on_full *ret, struct error *err);
int request_read_swap_arena(const json_t *request, uint64_t *ret_bytes, struct error *err);
