/* The type allot_change of liballot-client: the JSON members of a request "set". */
#include <errno.h>
#include <stdlib.h>

#include "base/parse.h"
#include "client/handle.h"

ALLOT_PUBLIC allot_change *allot_change_new(void)
{
	allot_change *change = calloc(1, sizeof(*change));

	if (change && !(change->members = json_object())) {
		free(change);
		return NULL;
	}
	return change;
}

ALLOT_PUBLIC void allot_change_free(allot_change *change)
{
	if (!change)
		return;
	json_decref(change->members);
	free(change);
}

/* An entry of "devices" without an index is for the tenant's only device. */
static bool is_device(const json_t *device, int index)
{
	const json_t *own = json_object_get(device, "index");

	return index == ALLOT_ONLY_DEVICE ? !own : own && json_integer_value(own) == index;
}

/* Returns the entry of "devices" for device `index`, or adds it. The change owns it. NULL if out of memory. */
static json_t *get_device(allot_change *change, int index)
{
	json_t *devices = json_object_get(change->members, "devices");
	json_t *device;
	size_t i;

	json_array_foreach(devices, i, device)
	{
		if (is_device(device, index))
			return device;
	}
	if (!devices) {
		devices = json_array();
		if (json_object_set_new(change->members, "devices", devices))
			return NULL;
	}
	device = json_object();
	if (index != ALLOT_ONLY_DEVICE && json_object_set_new(device, "index", json_integer(index))) {
		json_decref(device);
		return NULL;
	}
	return json_array_append_new(devices, device) ? NULL : device;
}

/* Takes ownership of `value`, also on failure. */
static int put(allot_change *change, int index, const char *key, json_t *value)
{
	json_t *device = get_device(change, index);

	if (!device) {
		json_decref(value);
		return -ENOMEM;
	}
	return json_object_set_new(device, key, value) ? -ENOMEM : 0;
}

static int put_pct(allot_change *change, int index, const char *key, double pct)
{
	/* The negation of the whole condition rejects NaN too. */
	if (index < ALLOT_ONLY_DEVICE || !(pct >= 0 && pct <= 100))
		return -EINVAL;
	return put(change, index, key, json_real(pct));
}

ALLOT_PUBLIC int allot_change_memory_bytes(allot_change *change, int device_index,
					   uint64_t quota_bytes)
{
	if (device_index < ALLOT_ONLY_DEVICE || !quota_bytes || quota_bytes > INT64_MAX)
		return -EINVAL;
	return put(change, device_index, "memory_bytes", json_integer((json_int_t)quota_bytes));
}

ALLOT_PUBLIC int allot_change_memory_rest(allot_change *change, int device_index)
{
	if (device_index < ALLOT_ONLY_DEVICE)
		return -EINVAL;
	return put(change, device_index, "memory_bytes", json_null());
}

ALLOT_PUBLIC int allot_change_cores_pct(allot_change *change, int device_index, double cores_pct)
{
	return put_pct(change, device_index, "cores_pct", cores_pct);
}

ALLOT_PUBLIC int allot_change_cores_limit_pct(allot_change *change, int device_index,
					      double limit_pct)
{
	return limit_pct > 0 ? put_pct(change, device_index, "cores_limit_pct", limit_pct) : -EINVAL;
}

ALLOT_PUBLIC int allot_change_priority(allot_change *change, int priority)
{
	if (priority < -PRIORITY_MOST || priority > PRIORITY_MOST)
		return -EINVAL;
	return json_object_set_new(change->members, "priority", json_integer(priority)) ? -ENOMEM
											: 0;
}

ALLOT_PUBLIC int allot_change_elastic(allot_change *change, int is_elastic)
{
	return json_object_set_new(change->members, "elastic", json_boolean(is_elastic)) ? -ENOMEM
											 : 0;
}

json_t *change_to_request(const struct allot_change *change, const char *tenant)
{
	json_t *request = json_deep_copy(change->members);

	/* json_string() fails for a name that is not UTF-8. No tenant has such a name; the daemon refuses the empty name. */
	if (request && json_object_set_new(request, "name", json_string(tenant)) &&
	    json_object_set_new(request, "name", json_string(""))) {
		json_decref(request);
		return NULL;
	}
	return request;
}
