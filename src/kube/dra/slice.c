#include "kube/dra/slice.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"

#define MIB (UINT64_C(1) << 20)
#define TEXT_MAX 64 /* longest text of an attribute; a longer one is cut */
#define STANDARD "resource.kubernetes.io/"

static void add_text(json_t *attributes, const char *name, const char *text)
{
	char value[TEXT_MAX + 1];
	if (!text || !*text)
		return;
	snprintf(value, sizeof(value), "%s", text);
	json_object_set_new(attributes, name, json_pack("{s:s}", "string", value));
}

static void add_number(json_t *attributes, const char *name, unsigned number)
{
	json_object_set_new(attributes, name, json_pack("{s:i}", "int", (int)number));
}

static void add_version(json_t *attributes, const char *name, unsigned major, unsigned minor)
{
	char text[32];
	if (!major)
		return;
	snprintf(text, sizeof(text), "%u.%u.0", major, minor);
	json_object_set_new(attributes, name, json_pack("{s:s}", "version", text));
}

/* Turns "535.104.05" into "535.104.5": attributes need a semantic version (semver.org), without leading zeros. */
static void add_driver(json_t *attributes, const char *text)
{
	unsigned major, minor, patch = 0;
	char version[48];
	if (!text || sscanf(text, "%u.%u.%u", &major, &minor, &patch) < 2)
		return;
	snprintf(version, sizeof(version), "%u.%u.%u", major, minor, patch);
	json_object_set_new(attributes, "driverVersion", json_pack("{s:s}", "version", version));
}

static const char *architecture(const struct dra_device *d)
{
	switch (d->capability_major) {
	case 6: return "Pascal";
	case 7: return d->capability_minor >= 5 ? "Turing" : "Volta";
	case 8: return d->capability_minor >= 9 ? "Ada Lovelace" : "Ampere";
	case 9: return "Hopper";
	case 10:
	case 11:
	case 12: return "Blackwell";
	default: return NULL;
	}
}

/* The MIG profile is the end of the product's name: "1g.10gb" of "NVIDIA H100 80GB HBM3 MIG 1g.10gb". */
static const char *profile(const struct dra_device *d)
{
	const char *at = d->is_instance && d->product ? strstr(d->product, " MIG ") : NULL;
	return at ? at + strlen(" MIG ") : NULL;
}

static json_t *attributes_of(const struct dra_device *d)
{
	json_t *a = json_object();
	add_text(a, "type", d->is_instance ? "mig" : "gpu");
	add_text(a, "uuid", d->uuid);
	add_text(a, "productName", d->product);
	add_text(a, "architecture", architecture(d));
	add_text(a, "profile", profile(d));
	add_text(a, "parentUUID", d->parent_uuid);
	add_number(a, "memoryMiB", (unsigned)(d->memory_bytes / MIB));
	add_version(a, "cudaComputeCapability", d->capability_major, d->capability_minor);
	add_version(a, "cudaDriverVersion", d->cuda_major, d->cuda_minor);
	add_driver(a, d->driver_version);
	if (d->multiprocessors)
		add_number(a, "multiprocessors", d->multiprocessors);
	if (d->numa_known)
		add_number(a, "numaNode", d->numa);
	add_text(a, "nvlinkDomain", d->nvlink_domain);
	add_text(a, STANDARD "pciBusID", d->pci_address);
	add_text(a, STANDARD "pcieRoot", d->pcie_root);
	return a;
}

/* As the API server does: in the largest unit in which the quantity is whole. */
static json_t *memory_quantity(uint64_t bytes)
{
	static const char units[] = "MGTPE";
	uint64_t mib = bytes / MIB;
	size_t unit = 0;
	char text[32];
	while (mib && mib % 1024 == 0 && units[unit + 1]) {
		mib /= 1024;
		unit++;
	}
	snprintf(text, sizeof(text), "%" PRIu64 "%ci", mib, units[unit]);
	return json_string(text);
}

/* The default request is the whole GPU: a claim without a memory request fits only a GPU that no claim uses. */
static json_t *memory_capacity(const struct dra_device *d)
{
	return json_pack("{s:o, s:{s:o, s:{s:s, s:s}}}", "value",
			 memory_quantity(d->memory_left_bytes), "requestPolicy", "default",
			 memory_quantity(d->memory_bytes), "validRange", "min", "1Mi", "step",
			 "1Mi");
}

/*
 * The default request is 0: a claim without a cores request gets no guarantee. If no cores are left, there is no request
 * policy, because its step (1) would exceed the capacity (0).
 */
static json_t *cores_capacity(const struct dra_device *d)
{
	char text[16];
	snprintf(text, sizeof(text), "%u", d->cores_left_pct);
	json_t *capacity = json_pack("{s:s}", "value", text);
	if (d->cores_left_pct)
		json_object_set_new(capacity, "requestPolicy",
				    json_pack("{s:s, s:{s:s, s:s}}", "default", "0", "validRange",
					      "min", "0", "step", "1"));
	return capacity;
}

/* The device's name is its UUID as a DNS label. */
static void device_name(const char *uuid, char ret[DRA_DEVICE_MAX])
{
	size_t n = 0;
	for (; uuid[n] && n < DRA_DEVICE_MAX - 1; n++)
		ret[n] = isalnum((unsigned char)uuid[n]) ? (char)tolower((unsigned char)uuid[n])
							 : '-';
	ret[n] = '\0';
}

static void add_taint(json_t *taints, const char *key)
{
	json_array_append_new(taints, json_pack("{s:s, s:s}", "key", key, "effect", "NoSchedule"));
}

static json_t *taints_of(const struct dra_device *d)
{
	if (!d->is_cordoned && !d->is_unhealthy)
		return NULL;
	json_t *taints = json_array();
	if (d->is_cordoned)
		add_taint(taints, DRA_TAINT_CORDONED);
	if (d->is_unhealthy)
		add_taint(taints, DRA_TAINT_UNHEALTHY);
	return taints;
}

static json_t *device_of(const struct dra_device *d)
{
	char name[DRA_DEVICE_MAX];
	device_name(d->uuid, name);
	return json_pack("{s:s, s:o, s:{s:o, s:o}, s:b, s:o*}", "name", name, "attributes",
			 attributes_of(d), "capacity", DRA_MEMORY, memory_capacity(d), DRA_CORES,
			 cores_capacity(d), "allowMultipleAllocations", true, "taints",
			 taints_of(d));
}

bool dra_devices_are_tainted(const json_t *devices)
{
	const json_t *device;
	size_t i;
	json_array_foreach((json_t *)devices, i, device)
	{
		if (json_object_get(device, "taints"))
			return true;
	}
	return false;
}

json_t *dra_devices_without_taints(const json_t *devices)
{
	json_t *list = json_array(), *device;
	size_t i;
	json_array_foreach((json_t *)devices, i, device)
	{
		if (!json_object_get(device, "taints"))
			json_array_append(list, device);
	}
	return list;
}

json_t *dra_devices(const struct dra_device *device, size_t count)
{
	json_t *list = json_array();
	for (size_t i = 0; list && i < count; i++) {
		/* The API server wants the capacity to be at least the smallest request (1 MiB) plus one step (1 MiB). */
		if (device[i].memory_left_bytes < 2 * MIB)
			continue;
		if (json_array_append_new(list, device_of(&device[i])) < 0) {
			json_decref(list);
			return NULL;
		}
	}
	return list;
}

/* Returns how many bytes of the node's name fit beside else_bytes other bytes. A cut name must end with a letter or digit. */
static int node_length(const char *node, size_t else_bytes)
{
	size_t length = strnlen(node, else_bytes < DRA_POOL_MAX ? DRA_POOL_MAX - 1 - else_bytes : 0);
	while (node[length] && length && !isalnum((unsigned char)node[length - 1]))
		length--;
	return (int)length;
}

void dra_pool_name(const char *node, const char *device, char ret[DRA_POOL_MAX])
{
	int length = node_length(node, strlen("/") + strlen(device));
	snprintf(ret, DRA_POOL_MAX, "%.*s/%s", length, node, device);
}

void dra_slice_name(const char *node, const char *device, char ret[DRA_POOL_MAX])
{
	int length = node_length(node, strlen(device) + strlen("--" DRA_DRIVER));
	snprintf(ret, DRA_POOL_MAX, "%.*s-%s-" DRA_DRIVER, length, node, device);
}

json_t *dra_slice(const struct dra_slice_names *names, const char *version, int64_t generation,
		  json_t *devices)
{
	cleanup_json json_t *metadata = json_pack("{s:s, s:s*, s:[{s:s, s:s, s:s, s:s, s:b}]}",
						  "name", names->name, "resourceVersion", version,
						  "ownerReferences", "apiVersion", "v1", "kind",
						  "Node", "name", names->node, "uid",
						  names->node_uid, "controller", true);
	if (!metadata)
		return NULL;
	return json_pack("{s:s, s:s, s:O, s:{s:s, s:s, s:{s:s, s:I, s:i}, s:O}}", "apiVersion",
			 "resource.k8s.io/v1", "kind", "ResourceSlice", "metadata", metadata,
			 "spec", "driver", DRA_DRIVER, "nodeName", names->node, "pool", "name",
			 names->pool, "generation", (json_int_t)generation, "resourceSliceCount", 1,
			 "devices", devices);
}

bool dra_slice_is_shared(const json_t *slice)
{
	const json_t *devices = json_object_get(json_object_get(slice, "spec"), "devices");
	return json_is_true(json_object_get(json_array_get(devices, 0), "allowMultipleAllocations"));
}

static int add_size(json_t *sizes, json_int_t mib)
{
	size_t i = 0;
	while (i < json_array_size(sizes) && json_integer_value(json_array_get(sizes, i)) < mib)
		i++;
	if (json_integer_value(json_array_get(sizes, i)) == mib)
		return 0;
	return json_array_insert_new(sizes, i, json_integer(mib)) < 0 ? -ENOMEM : 0;
}

static int add_device_size(const json_t *device, json_t *sizes)
{
	const json_t *a = json_object_get(device, "attributes");
	const char *type = json_string_value(json_object_get(json_object_get(a, "type"), "string"));
	json_int_t mib = json_integer_value(json_object_get(json_object_get(a, "memoryMiB"), "int"));
	return type && !strcmp(type, "gpu") && mib > 0 ? add_size(sizes, mib) : 0;
}

int dra_add_memory_sizes(const json_t *slices, json_t *sizes_mib)
{
	const json_t *slice, *device;
	size_t i, k;
	int r = 0;
	json_array_foreach(json_object_get(slices, "items"), i, slice)
	{
		const json_t *devices = json_object_get(json_object_get(slice, "spec"), "devices");
		json_array_foreach((json_t *)devices, k, device)
		{
			if (r >= 0)
				r = add_device_size(device, sizes_mib);
		}
	}
	return r;
}
