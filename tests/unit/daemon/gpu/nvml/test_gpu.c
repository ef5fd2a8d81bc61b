/* The NVML backend, on a fake NVML whose path is the first argument. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../../../scratch.h"
#include "daemon/gpu/nvml/gpu.h"

#define MIB (UINT64_C(1) << 20)

static const char *library;

static void test_uuid(void **state)
{
	static const char *const bad[] = {
		"",
		"GPU-",
		"GPU-1",
		"x",
		"GPU-00112233-4455-6677-8899-aabbccddeef",
		"GPU-00112233-4455-6677-8899-aabbccddeeff0",
		"GPU-00112233-4455-6677-8899-aabbccddeefg",
		"MIG-GPU-00112233-4455-6677-8899-aabbccddeeff/1/0",
	};
	static const uint8_t wanted[16] = { 0x00, 0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77,
					    0x88, 0x99, 0xaa, 0xbb, 0xcc, 0xdd, 0xee, 0xff };
	uint8_t uuid[16];
	assert_int_equal(gpu_uuid_parse("GPU-00112233-4455-6677-8899-AABBccddeeff", uuid), 0);
	assert_memory_equal(uuid, wanted, 16);
	assert_int_equal(gpu_uuid_parse("MIG-00112233-4455-6677-8899-aabbccddeeff", uuid), 0);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_int_equal(gpu_uuid_parse(bad[i], uuid), -EINVAL);
}

static void test_cards(void **state)
{
	struct gpu *gpu;
	struct error err;
	struct gpu_info info;
	struct gpu_memory memory;
	struct gpu_link links[4];
	unsetenv("FAKE_NVML");
	assert_int_equal(gpu_nvml.open(library, &gpu, &err), 0);
	assert_int_equal(gpu_nvml.count(gpu), 2);
	assert_string_equal(gpu_nvml.driver_version(gpu), ""); /* this one does not report it */
	assert_int_equal(gpu_nvml.info(gpu, 1, &info, &err), 0);
	assert_string_equal(info.uuid_text, "GPU-0a0b0c0d-1111-2222-3333-000000000002");
	assert_int_equal(info.uuid[0], 0x0a);
	assert_int_equal(info.memory_bytes, 900 * MIB);
	assert_int_equal(gpu_nvml.memory(gpu, 0, &memory, &err), 0);
	assert_int_equal(memory.used_bytes, 50 * MIB);
	setenv("FAKE_NVML", "v1", 1);
	assert_int_equal(gpu_nvml.memory(gpu, 0, &memory, &err), 0);
	assert_int_equal(memory.used_bytes, 150 * MIB);
	assert_int_equal(memory.reserved_bytes, 0);
	/* It lacks all functions that report where cards are. */
	assert_string_equal(gpu_nvml.locality(gpu, 0).pci, "");
	assert_false(gpu_nvml.locality(gpu, 0).numa_known);
	assert_int_equal(gpu_nvml.links(gpu, links, &err), 0);
	for (unsigned i = 0; i < 4; i++) {
		assert_int_equal(links[i].nvlinks, 0);
		assert_int_equal(links[i].way, GPU_WAY_UNKNOWN);
	}
	assert_null(gpu_nvml.close(gpu));
}

static void test_processes(void **state)
{
	struct gpu *gpu;
	struct error err;
	struct gpu_process list[3];
	size_t count;
	unsetenv("FAKE_NVML");
	assert_int_equal(gpu_nvml.open(library, &gpu, &err), 0);
	assert_int_equal(gpu_nvml.processes(gpu, 0, list, 3, &count, &err), 0);
	assert_int_equal(count, 3); /* a process that computes and draws is listed once */
	assert_int_equal(list[0].used_bytes, 30 * MIB);
	assert_false(list[1].used_known);
	assert_int_equal(list[2].pid, 12);
	assert_int_equal(gpu_nvml.processes(gpu, 0, list, 1, &count, &err), 0);
	assert_true(count > 1);
	gpu_nvml.close(gpu);
}

static void test_use(void **state)
{
	struct gpu *gpu;
	struct error err;
	struct gpu_use list[3];
	size_t count = 7;
	unsetenv("FAKE_NVML");
	assert_int_equal(gpu_nvml.open(library, &gpu, &err), 0);
	assert_int_equal(gpu_nvml.use(gpu, 0, 1000, list, 3, &count, &err), 0);
	assert_int_equal(count, 2);
	assert_true(list[0].pid == 10 && list[0].share == 0.4);
	assert_true(list[1].pid == 11 && list[1].share == 1);
	assert_int_equal(gpu_nvml.use(gpu, 0, 1000, list, 1, &count, &err), 0);
	assert_int_equal(count, 1);
	/* No process used the GPU: not an error. */
	assert_int_equal(gpu_nvml.use(gpu, 0, 3000, list, 3, &count, &err), 0);
	assert_int_equal(count, 0);
	setenv("FAKE_NVML", "use", 1);
	assert_int_equal(gpu_nvml.use(gpu, 0, 0, list, 3, &count, &err), -EOPNOTSUPP);
	unsetenv("FAKE_NVML");
	gpu_nvml.close(gpu);
}

static void test_faults(void **state)
{
	struct gpu *gpu;
	struct error err;
	struct gpu_fault fault = { .index = 9 };
	unsetenv("FAKE_NVML");
	assert_int_equal(gpu_nvml.open(library, &gpu, &err), 0);
	assert_int_equal(gpu_nvml.wait_fault(gpu, 0, &fault, &err), 1);
	assert_true(fault.index == 1 && fault.kind == GPU_FAULT_XID && fault.number == 79);
	assert_int_equal(gpu_nvml.wait_fault(gpu, 1, &fault, &err), 1);
	assert_true(fault.index == 0 && fault.kind == GPU_FAULT_ECC);
	assert_int_equal(gpu_nvml.wait_fault(gpu, 2, &fault, &err), 0); /* of no card that is ours */
	assert_int_equal(gpu_nvml.wait_fault(gpu, 3, &fault, &err), 0);
	assert_int_equal(gpu_nvml.wait_fault(gpu, 4, &fault, &err), -ENODEV);
	assert_int_equal(gpu_nvml.wait_fault(gpu, 5, &fault, &err), -EIO);
	gpu_nvml.close(gpu);
	setenv("FAKE_NVML", "events", 1);
	assert_int_equal(gpu_nvml.open(library, &gpu, &err), 0);
	assert_int_equal(gpu_nvml.wait_fault(gpu, 0, &fault, &err), -EOPNOTSUPP);
	unsetenv("FAKE_NVML");
	gpu_nvml.close(gpu);
}

static void test_instances(void **state)
{
	struct gpu *gpu;
	struct error err;
	struct gpu_info info;
	struct gpu_link links[4];
	struct gpu_fault fault;
	setenv("FAKE_NVML", "mig", 1);
	assert_int_equal(gpu_nvml.open(library, &gpu, &err), 0);
	assert_int_equal(gpu_nvml.count(gpu), 2);
	assert_int_equal(gpu_nvml.info(gpu, 0, &info, &err), 0);
	assert_string_equal(info.uuid_text, "MIG-0a0b0c0d-1111-2222-3333-000000000065");
	assert_true(info.is_instance && info.minor_known && !info.caps.is_known);
	assert_int_equal(info.minor, 7); /* its card's */
	assert_int_equal(gpu_nvml.info(gpu, 1, &info, &err), 0);
	assert_string_equal(info.uuid_text, "GPU-0a0b0c0d-1111-2222-3333-000000000002");
	assert_false(info.is_instance);
	assert_string_equal(gpu_nvml.left_out(gpu),
			    "MIG-0a0b0c0d-1111-2222-3333-000000000066 shares the memory of GPU "
			    "instance 5 with another compute instance, so no quota could be enforced "
			    "(leave one compute instance in it, then restart allotd); "
			    "MIG-0a0b0c0d-1111-2222-3333-000000000069 shares the memory of GPU "
			    "instance 5 with another compute instance, so no quota could be enforced "
			    "(leave one compute instance in it, then restart allotd)");
	assert_int_equal(gpu_nvml.links(gpu, links, &err), 0);
	assert_int_equal(links[1].way, GPU_WAY_UNKNOWN);
	/* Of an instance that is not shared, of a shared one, and of no instance. */
	assert_int_equal(gpu_nvml.wait_fault(gpu, 0, &fault, &err), 0);
	assert_int_equal(gpu_nvml.wait_fault(gpu, 1, &fault, &err), 1);
	assert_true(fault.index == 0 && fault.number == 44);
	assert_int_equal(gpu_nvml.wait_fault(gpu, 2, &fault, &err), 1);
	assert_true(fault.index == 0 && fault.number == 79);
	assert_int_equal(gpu_nvml.wait_fault(gpu, 3, &fault, &err), 0);
	gpu_nvml.close(gpu);
	unsetenv("FAKE_NVML");
}

/* Seven instances are left out: the text has the first two in full, and the number of the others. */
static void test_many_instances_left_out(void **state)
{
	struct gpu *gpu;
	struct error err;
	setenv("FAKE_NVML", "mig-many", 1);
	assert_int_equal(gpu_nvml.open(library, &gpu, &err), 0);
	assert_int_equal(gpu_nvml.count(gpu), 1);
	const char *text = gpu_nvml.left_out(gpu), *last = strrchr(text, ';');
	assert_non_null(strstr(text, "then restart allotd); MIG-"));
	assert_non_null(last);
	assert_string_equal(last, "; and 5 more");
	gpu_nvml.close(gpu);
	unsetenv("FAKE_NVML");
}

static void write_access(const char *dir, const char *text)
{
	char path[160];
	snprintf(path, sizeof(path), "mkdir -p %s/%s", scratch, dir);
	assert_int_equal(system(path), 0);
	snprintf(path, sizeof(path), "%s/%s/access", scratch, dir);
	FILE *file = fopen(path, "w");
	assert_non_null(file);
	fputs(text, file);
	fclose(file);
}

static void test_capabilities(void **state)
{
	struct mig_caps caps;
	write_access("gpu1/mig/gi7", "DeviceFileMinor: 66\nDeviceFileMode: 292\n");
	assert_false(mig_caps_read(scratch, 1, 7, 0).is_known);
	write_access("gpu1/mig/gi7/ci0", "DeviceFileMode: 292\nDeviceFileMinor: 67\n");
	caps = mig_caps_read(scratch, 1, 7, 0);
	assert_true(caps.is_known && caps.gpu_instance == 66 && caps.compute_instance == 67);
	assert_false(mig_caps_read(scratch, 0, 7, 0).is_known);
	assert_false(mig_caps_read(scratch, 1, 7, 1).is_known);
	write_access("gpu1/mig/gi7/ci0", "DeviceFileMinor: none\n");
	assert_false(mig_caps_read(scratch, 1, 7, 0).is_known);
}

static void refused(const char *wrong, const char *path, const char *word)
{
	struct gpu *gpu = NULL;
	struct error err = { 0 };
	setenv("FAKE_NVML", wrong, 1);
	assert_int_equal(gpu_nvml.open(path, &gpu, &err), -ENODEV);
	assert_null(gpu);
	if (!strstr(err.text, word))
		fail_msg("'%s' does not say '%s'", err.text, word);
}

static void test_no_gpu(void **state)
{
	refused("", "/nowhere/libnvidia-ml.so.1",
		"No such file or directory: install NVIDIA's driver");
	refused("driver", library, "driver is not loaded");
	refused("empty", library, "no GPU");
	refused("mig-none", library,
		"no GPU to share: GPU-0a0b0c0d-1111-2222-3333-000000000001 is in MIG mode and has "
		"no instance (create one, or turn MIG mode off); "
		"GPU-0a0b0c0d-1111-2222-3333-000000000002 is");
	refused("", "libc.so.6", "lacks nvmlInit_v2");
}

static void test_backends(void **state)
{
	assert_ptr_equal(gpu_backend_find("nvml"), &gpu_nvml);
	assert_null(gpu_backend_find("other"));
	assert_null(gpu_nvml.close(NULL));
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_uuid),
		cmocka_unit_test(test_cards),
		cmocka_unit_test(test_processes),
		cmocka_unit_test(test_use),
		cmocka_unit_test(test_faults),
		cmocka_unit_test(test_no_gpu),
		cmocka_unit_test(test_backends),
		cmocka_unit_test(test_instances),
		cmocka_unit_test(test_many_instances_left_out),
		cmocka_unit_test(test_capabilities),
	};
	library = argc > 1 ? argv[1] : "";
	return cmocka_run_group_tests(tests, make_scratch, remove_scratch);
}
