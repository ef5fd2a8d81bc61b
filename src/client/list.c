/*
 * The type allot_list of liballot-client: the reply to a request "list". Devices, tenants and shares of the list are JSON
 * objects inside that reply.
 */
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

/* `object` is a device, tenant or share: a JSON object of the reply, cast to another type. */
static const json_t *member(const void *object, const char *key)
{
	return json_object_get((const json_t *)object, key);
}

/* A value that an older daemon does not send is read as "" or 0. */
static const char *text_of(const void *object, const char *key)
{
	return json_string_or((const json_t *)object, key, "");
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

#define MEMBER(type, object, name, read, key) \
	ALLOT_PUBLIC type allot_##object##_##name(const allot_##object *object) \
	{ \
		return (type)read(object, key); \
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

MEMBER(int, device, index, whole_of, "index")
MEMBER(const char *, device, uuid, text_of, "uuid")
MEMBER(const char *, device, name, text_of, "name")
MEMBER(uint64_t, device, memory_bytes, whole_of, "memory_bytes")

ALLOT_PUBLIC int allot_device_memory_used_bytes(const allot_device *device, uint64_t *ret_bytes)
{
	if (!json_is_integer(member(device, "memory_used_bytes")))
		return -ENODATA;
	*ret_bytes = whole_of(device, "memory_used_bytes");
	return 0;
}

MEMBER(double, device, busy_pct, real_of, "busy_pct")
MEMBER(uint64_t, device, promised_bytes, whole_of, "promised_bytes")
MEMBER(double, device, promised_cores_pct, real_of, "promised_cores_pct")

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

MEMBER(const char *, tenant, name, text_of, "name")
MEMBER(const char *, tenant, id, text_of, "id")
MEMBER(const char *, tenant, state, text_of, "state")
MEMBER(uint32_t, tenant, uid, whole_of, "uid")

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

MEMBER(int, share, device_index, whole_of, "index")
MEMBER(uint64_t, share, memory_quota_bytes, whole_of, "memory_quota_bytes")

ALLOT_PUBLIC int allot_share_memory_is_given(const allot_share *share)
{
	return json_is_true(member(share, "memory_given"));
}

MEMBER(uint64_t, share, memory_used_bytes, whole_of, "memory_used_bytes")
MEMBER(double, share, cores_pct, real_of, "cores_pct")
MEMBER(double, share, cores_limit_pct, real_of, "cores_limit_pct")
MEMBER(double, share, cores_limit_now_pct, real_of, "cores_limit_now_pct")
MEMBER(double, share, got_1s_pct, real_of, "got_1s_pct")
MEMBER(double, share, got_60s_pct, real_of, "got_60s_pct")
MEMBER(double, share, waited_s, real_of, "waited_s")
MEMBER(uint64_t, share, denied, whole_of, "denied")
