#include "cli/top/top_json.h"

static json_t *make_rates(const struct history_rates *rates)
{
	if (!rates->is_set)
		return json_null();
	return json_pack("{s:f, s:f, s:f, s:f, s:I, s:I}", "interval_s", rates->interval_s,
			 "got_pct", rates->got_pct, "leases_per_s", rates->leases_per_s,
			 "threads_waiting", rates->waiting, "denied", (json_int_t)rates->denied,
			 "expired", (json_int_t)rates->expired);
}

/* The devices, the snapshot's shares and the shares in `history` have the same order. */
static void add_rates(json_t *tenants, const struct history *history)
{
	size_t i, j, share = 0;
	json_t *tenant, *device;

	json_array_foreach(tenants, i, tenant)
	{
		json_array_foreach(json_object_get(tenant, "devices"), j, device)
			json_object_set_new(device, "rates",
					    make_rates(history_share_rates(history, share++)));
	}
}

static json_t *array_of(const json_t *object, const char *key)
{
	json_t *array = json_object_get(object, key);

	return array ? json_incref(array) : json_array();
}

json_t *report_make(json_t *list, json_t *tasks, const struct history *history)
{
	json_t *tenants = array_of(list, "tenants");

	add_rates(tenants, history);
	return json_pack("{s:i, s:b, s:o, s:o, s:o}", "version", 1, "connected", list != NULL,
			 "devices", array_of(list, "devices"), "tenants", tenants, "containers",
			 array_of(tasks, "containers"));
}
