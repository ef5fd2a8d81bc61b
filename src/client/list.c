/* liballot-client's lists: the reply to "list", read in place. Its objects are the members of the reply. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "client/handle.h"

struct allot_list {
	json_t *reply;
	char *text;
};

allot_list *list_new(json_t *reply)
{
	allot_list *list = calloc(1, sizeof(*list));

	if (!list) {
		json_decref(reply);
		return NULL;
	}
	list->reply = reply;
	list->text = json_dumps(reply, JSON_COMPACT);
	if (!list->text) {
		allot_list_free(list);
		return NULL;
	}
	return list;
}

ALLOT_PUBLIC void allot_list_free(allot_list *list)
{
	if (!list)
		return;
	json_decref(list->reply);
	free(list->text);
	free(list);
}

ALLOT_PUBLIC const char *allot_list_json(const allot_list *list)
{
	return list->text;
}

/* Devices, tenants and shares are objects of the reply, under other names. */
static const json_t *member(const void *object, const char *key)
{
	return json_object_get((const json_t *)object, key);
}

/* What an older daemon does not say is "" or 0. */
static const char *text_of(const void *object, const char *key)
{
	const char *text = json_string_value(member(object, key));

	return text ? text : "";
}

static uint64_t whole_of(const void *object, const char *key)
{
	json_int_t value = json_integer_value(member(object, key));

	return value > 0 ? (uint64_t)value : 0;
}

static double real_of(const void *object, const char *key)
{
	return json_number_value(member(object, key));
}

static const void *item(const void *object, const char *key, size_t i)
{
	return json_array_get(member(object, key), i);
}

ALLOT_PUBLIC size_t allot_list_device_count(const allot_list *list)
{
	return json_array_size(member(list->reply, "devices"));
}

ALLOT_PUBLIC const allot_device *allot_list_device(const allot_list *list, size_t i)
{
	return item(list->reply, "devices", i);
}

ALLOT_PUBLIC size_t allot_list_tenant_count(const allot_list *list)
{
	return json_array_size(member(list->reply, "tenants"));
}

ALLOT_PUBLIC const allot_tenant *allot_list_tenant(const allot_list *list, size_t i)
{
	return item(list->reply, "tenants", i);
}

ALLOT_PUBLIC const allot_tenant *allot_list_find_tenant(const allot_list *list, const char *name)
{
	size_t count = allot_list_tenant_count(list);

	for (size_t i = 0; i < count; i++) {
		const allot_tenant *tenant = allot_list_tenant(list, i);

		if (strcmp(allot_tenant_name(tenant), name) == 0 ||
		    strcmp(allot_tenant_id(tenant), name) == 0)
			return tenant;
	}
	return NULL;
}

ALLOT_PUBLIC int allot_device_index(const allot_device *device)
{
	return (int)whole_of(device, "index");
}

ALLOT_PUBLIC const char *allot_device_uuid(const allot_device *device)
{
	return text_of(device, "uuid");
}

ALLOT_PUBLIC const char *allot_device_name(const allot_device *device)
{
	return text_of(device, "name");
}

ALLOT_PUBLIC uint64_t allot_device_memory_bytes(const allot_device *device)
{
	return whole_of(device, "memory_bytes");
}

ALLOT_PUBLIC int allot_device_memory_used_bytes(const allot_device *device, uint64_t *ret_bytes)
{
	if (!json_is_integer(member(device, "memory_used_bytes")))
		return -ENODATA;
	*ret_bytes = whole_of(device, "memory_used_bytes");
	return 0;
}

ALLOT_PUBLIC double allot_device_busy_pct(const allot_device *device)
{
	return real_of(device, "busy_pct");
}

ALLOT_PUBLIC uint64_t allot_device_promised_bytes(const allot_device *device)
{
	return whole_of(device, "promised_bytes");
}

ALLOT_PUBLIC double allot_device_promised_cores_pct(const allot_device *device)
{
	return real_of(device, "promised_cores_pct");
}

ALLOT_PUBLIC const char *allot_device_fault(const allot_device *device)
{
	if (strcmp(text_of(device, "health"), "unhealthy") != 0)
		return NULL;
	return text_of(device, "health_reason");
}

ALLOT_PUBLIC int allot_device_is_cordoned(const allot_device *device)
{
	return json_is_true(member(device, "cordoned"));
}

ALLOT_PUBLIC const char *allot_tenant_name(const allot_tenant *tenant)
{
	return text_of(tenant, "name");
}

ALLOT_PUBLIC const char *allot_tenant_id(const allot_tenant *tenant)
{
	return text_of(tenant, "id");
}

ALLOT_PUBLIC const char *allot_tenant_state(const allot_tenant *tenant)
{
	return text_of(tenant, "state");
}

ALLOT_PUBLIC uint32_t allot_tenant_uid(const allot_tenant *tenant)
{
	return (uint32_t)whole_of(tenant, "uid");
}

ALLOT_PUBLIC int allot_tenant_priority(const allot_tenant *tenant)
{
	return (int)json_integer_value(member(tenant, "priority"));
}

ALLOT_PUBLIC size_t allot_tenant_share_count(const allot_tenant *tenant)
{
	return json_array_size(member(tenant, "devices"));
}

ALLOT_PUBLIC const allot_share *allot_tenant_share(const allot_tenant *tenant, size_t i)
{
	return item(tenant, "devices", i);
}

ALLOT_PUBLIC int allot_share_device_index(const allot_share *share)
{
	return (int)whole_of(share, "index");
}

ALLOT_PUBLIC uint64_t allot_share_memory_quota_bytes(const allot_share *share)
{
	return whole_of(share, "memory_quota_bytes");
}

ALLOT_PUBLIC int allot_share_memory_is_given(const allot_share *share)
{
	return json_is_true(member(share, "memory_given"));
}

ALLOT_PUBLIC uint64_t allot_share_memory_used_bytes(const allot_share *share)
{
	return whole_of(share, "memory_used_bytes");
}

ALLOT_PUBLIC double allot_share_cores_pct(const allot_share *share)
{
	return real_of(share, "cores_pct");
}

ALLOT_PUBLIC double allot_share_cores_limit_pct(const allot_share *share)
{
	return real_of(share, "cores_limit_pct");
}

ALLOT_PUBLIC double allot_share_cores_limit_now_pct(const allot_share *share)
{
	return real_of(share, "cores_limit_now_pct");
}

ALLOT_PUBLIC double allot_share_got_1s_pct(const allot_share *share)
{
	return real_of(share, "got_1s_pct");
}

ALLOT_PUBLIC double allot_share_got_60s_pct(const allot_share *share)
{
	return real_of(share, "got_60s_pct");
}

ALLOT_PUBLIC double allot_share_waited_s(const allot_share *share)
{
	return real_of(share, "waited_s");
}

ALLOT_PUBLIC uint64_t allot_share_denied(const allot_share *share)
{
	return whole_of(share, "denied");
}
