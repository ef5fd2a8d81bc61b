#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "kube/dra/slice.h"

#define GIB (UINT64_C(1) << 30)
#define MIB (UINT64_C(1) << 20)

/* What a path of names, by dots, leads to; numbers are places of lists. */
static const json_t *at(const json_t *object, const char *path)
{
	char name[64];
	while (*path) {
		size_t n = strcspn(path, ":");
		snprintf(name, sizeof(name), "%.*s", (int)n, path);
		object = json_is_array(object) ? json_array_get(object, strtoul(name, NULL, 10))
					       : json_object_get(object, name);
		path += n + (path[n] == ':');
	}
	return object;
}

static const char *text(const json_t *object, const char *path)
{
	const char *found = json_string_value(at(object, path));
	return found ? found : "";
}

static const struct dra_device h100 = {
	.uuid = "GPU-AB12",
	.product = "NVIDIA H100 80GB HBM3",
	.memory_bytes = 80 * GIB,
	.memory_left_bytes = 60 * GIB + MIB + 5,
	.cores_left_pct = 70,
	.capability_major = 9,
	.cuda_major = 12,
	.cuda_minor = 8,
	.driver_version = "535.104.05",
	.numa_known = true,
	.pci_address = "0000:18:00.0",
	.pcie_root = "pci0000:17",
	.nvlink_domain = "GPU-AB12",
	.multiprocessors = 132,
};

static void test_device(void **state)
{
	json_t *list = dra_devices(&h100, 1);
	assert_string_equal(text(list, "0:name"), "gpu-ab12");
	assert_true(json_is_true(at(list, "0:allowMultipleAllocations")));
	assert_string_equal(text(list, "0:capacity:memory:value"), "61441Mi");
	assert_string_equal(text(list, "0:capacity:memory:requestPolicy:default"), "80Gi");
	assert_string_equal(text(list, "0:capacity:memory:requestPolicy:validRange:step"), "1Mi");
	assert_string_equal(text(list, "0:capacity:cores:value"), "70");
	assert_string_equal(text(list, "0:capacity:cores:requestPolicy:default"), "0");
	assert_string_equal(text(list, "0:attributes:type:string"), "gpu");
	assert_string_equal(text(list, "0:attributes:uuid:string"), "GPU-AB12");
	assert_string_equal(text(list, "0:attributes:architecture:string"), "Hopper");
	assert_string_equal(text(list, "0:attributes:driverVersion:version"), "535.104.5");
	assert_string_equal(text(list, "0:attributes:cudaDriverVersion:version"), "12.8.0");
	assert_string_equal(text(list, "0:attributes:cudaComputeCapability:version"), "9.0.0");
	assert_string_equal(text(list, "0:attributes:resource.kubernetes.io/pcieRoot:string"),
			    "pci0000:17");
	assert_int_equal(json_integer_value(at(list, "0:attributes:numaNode:int")), 0);
	assert_int_equal(json_integer_value(at(list, "0:attributes:multiprocessors:int")), 132);
	assert_int_equal(json_integer_value(at(list, "0:attributes:memoryMiB:int")), 80 << 10);
	assert_null(at(list, "0:attributes:profile"));
	json_decref(list);
}

/* What is not known is left out. */
static void test_instance(void **state)
{
	const struct dra_device mig = { .uuid = "MIG-1",
					.product = "NVIDIA A100-SXM4-40GB MIG 1g.5gb",
					.is_instance = true,
					.parent_uuid = "GPU-AB12",
					.memory_bytes = 5 * GIB,
					.memory_left_bytes = 5 * GIB };
	json_t *list = dra_devices(&mig, 1);
	assert_string_equal(text(list, "0:name"), "mig-1");
	assert_string_equal(text(list, "0:attributes:type:string"), "mig");
	assert_string_equal(text(list, "0:attributes:profile:string"), "1g.5gb");
	assert_string_equal(text(list, "0:attributes:parentUUID:string"), "GPU-AB12");
	assert_int_equal(json_object_size(at(list, "0:attributes")), 6);
	/* A step is more than nothing: no policy then. */
	assert_string_equal(text(list, "0:capacity:cores:value"), "0");
	assert_null(at(list, "0:capacity:cores:requestPolicy"));
	json_decref(list);
}

static void test_taken_is_not_told(void **state)
{
	struct dra_device two[2] = { h100, h100 };
	two[0].memory_left_bytes = 2 * MIB - 1;
	two[1].uuid = "GPU-2";
	json_t *list = dra_devices(two, 2);
	assert_int_equal(json_array_size(list), 1);
	assert_string_equal(text(list, "0:name"), "gpu-2");
	json_decref(list);
}

static void test_taints(void **state)
{
	struct dra_device three[3] = { h100, h100, h100 };
	three[1].is_cordoned = true;
	three[2].is_cordoned = three[2].is_unhealthy = true;
	json_t *list = dra_devices(three, 3), *rest = dra_devices_without_taints(list);
	assert_null(at(list, "0:taints"));
	assert_string_equal(text(list, "1:taints:0:key"), "gpu.allot.dev/cordoned");
	assert_string_equal(text(list, "1:taints:0:effect"), "NoSchedule");
	assert_int_equal(json_array_size(at(list, "1:taints")), 1);
	assert_string_equal(text(list, "2:taints:1:key"), "gpu.allot.dev/unhealthy");
	assert_true(dra_devices_are_tainted(list));
	assert_false(dra_devices_are_tainted(rest));
	assert_int_equal(json_array_size(rest), 1);
	json_decref(rest);
	json_decref(list);
}

/* Of whole GPUs, whatever is left of them. */
static void test_sizes(void **state)
{
	struct dra_device four[4] = { h100, h100, h100, h100 };
	four[1].memory_bytes = 40 * GIB;
	four[2].is_instance = true;
	four[2].memory_bytes = 10 * GIB;
	four[3].memory_left_bytes = 30 * GIB;
	json_t *list = json_pack("{s:[{s:{s:o}}, {}]}", "items", "spec", "devices",
				 dra_devices(four, 4));
	json_t *sizes = json_pack("[i]", 40 << 10);
	assert_int_equal(dra_add_memory_sizes(list, sizes), 0);
	assert_int_equal(dra_add_memory_sizes(NULL, sizes), 0);
	assert_int_equal(json_array_size(sizes), 2);
	assert_int_equal(json_integer_value(json_array_get(sizes, 0)), 40 << 10);
	assert_int_equal(json_integer_value(json_array_get(sizes, 1)), 80 << 10);
	json_decref(sizes);
	json_decref(list);
}

static void test_slice(void **state)
{
	json_t *devices = dra_devices(&h100, 1);
	char pool[DRA_POOL_MAX];
	dra_pool_name("n1", "gpu-1", pool);
	const struct dra_slice_names names = {
		.node = "n1", .node_uid = "u-1", .name = "n1-x", .pool = pool
	};
	json_t *fresh = dra_slice(&names, NULL, 1, devices);
	assert_string_equal(text(fresh, "metadata:name"), "n1-x");
	assert_null(at(fresh, "metadata:resourceVersion"));
	assert_string_equal(text(fresh, "metadata:ownerReferences:0:uid"), "u-1");
	assert_string_equal(text(fresh, "spec:driver"), "gpu.allot.dev");
	assert_string_equal(text(fresh, "spec:nodeName"), "n1");
	assert_string_equal(text(fresh, "spec:pool:name"), "n1/gpu-1");
	assert_int_equal(json_integer_value(at(fresh, "spec:pool:resourceSliceCount")), 1);
	assert_true(dra_slice_is_shared(fresh));
	json_t *next = dra_slice(&names, "77", 8, devices);
	assert_string_equal(text(next, "metadata:resourceVersion"), "77");
	assert_int_equal(json_integer_value(at(next, "spec:pool:generation")), 8);
	json_object_del(json_array_get(devices, 0), "allowMultipleAllocations");
	assert_false(dra_slice_is_shared(next));
	json_decref(fresh);
	json_decref(next);
	json_decref(devices);
}

/* Kubernetes permits 253 bytes for each, as many as for the node's own name. */
static void test_names_of_a_node_with_a_long_name(void **state)
{
	static const char device[] = "gpu-5ba0f1c2-0000-1111-2222-333344445555";
	char node[254], name[DRA_POOL_MAX], long_device[400];
	dra_slice_name("n1", device, name);
	assert_string_equal(name, "n1-gpu-5ba0f1c2-0000-1111-2222-333344445555-gpu.allot.dev");
	memset(node, 'n', sizeof(node));
	node[253] = '\0';
	dra_slice_name(node, device, name);
	assert_int_equal(strlen(name), 253);
	assert_non_null(strstr(name, "nn-gpu-5ba0f1c2-0000-1111-2222-333344445555-gpu.allot.dev"));
	dra_pool_name(node, device, name);
	assert_int_equal(strlen(name), 253);
	assert_non_null(strstr(name, "nn/gpu-5ba0f1c2-0000-1111-2222-333344445555"));
	/* Cut behind a dot, the first part would be no DNS name. */
	memset(node + 190, '.', 22);
	dra_slice_name(node, device, name);
	assert_non_null(strstr(name, "n-gpu-5ba0f1c2"));
	dra_pool_name(node, device, name);
	assert_non_null(strstr(name, "n/gpu-5ba0f1c2"));
	/* An allocation may name anything as its device. */
	memset(long_device, 'd', sizeof(long_device) - 1);
	long_device[sizeof(long_device) - 1] = '\0';
	dra_pool_name(node, long_device, name);
	assert_int_equal(strlen(name), DRA_POOL_MAX - 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_device),
		cmocka_unit_test(test_instance),
		cmocka_unit_test(test_taken_is_not_told),
		cmocka_unit_test(test_taints),
		cmocka_unit_test(test_sizes),
		cmocka_unit_test(test_slice),
		cmocka_unit_test(test_names_of_a_node_with_a_long_name),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
