/*
 * The virtual card that NVML is answered from: whose processes, with what memory and what part of the
 * card's time, and counts that are too small. And the numbers of CUDA_VISIBLE_DEVICES.
 */
#include "../../test.h"

#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "../../fake_process.h"
#include "library/entry/nvml/nvml_card.h"
#include "library/entry/nvml/nvml_hooks.h"
#include "library/entry/start/visible.h"
#include "library/loader/real.h"
#include "library/memory/ledger.h"

struct real_nvml real_nvml;
struct real_driver real;

int process_uuid_index(const void *uuid)
{
	return memcmp(fake_control->device[0].uuid, uuid, 16) ? -1 : 0;
}

static struct region_slot_device *live(uint32_t slot, int own_pid, uint64_t used_bytes)
{
	fake_report->slot[slot].state = SLOT_LIVE;
	fake_report->slot[slot].pid = 1000 + own_pid;
	fake_report->slot[slot].own_pid = own_pid;
	fake_report->slot[slot].device[0].used_bytes = used_bytes;
	fake_report->slot[slot].device[0].context_used_bytes = used_bytes ? 1 : 0;
	return &fake_report->slot[slot].device[0];
}

static void start(void)
{
	fake_process_start(8);
	fake_control->device[0].quota_bytes = 1000;
}

static void test_lists_processes_with_contexts(void **state)
{
	nvmlProcessInfo_t infos[4];
	nvmlProcessInfo_v1_t old[4];
	unsigned int count = 0;

	start();
	live(0, 10, 0); /* asks NVML, and holds nothing */
	live(2, 12, 300);
	live(5, 15, 200)->unnamed_bytes = 50;
	live(7, 17, 100)->context_used_bytes = 0; /* memory of a pool outlives the last context */
	fake_report->slot[6].device[0].used_bytes = 7; /* of no process of the tenant */
	assert_int_equal(nvml_compute_processes(0, NULL, NULL, &count, NULL),
			 NVML_ERROR_INSUFFICIENT_SIZE);
	assert_int_equal(count, 2);
	count = 1;
	assert_int_equal(nvml_compute_processes(0, NULL, NULL, &count, infos),
			 NVML_ERROR_INSUFFICIENT_SIZE);
	assert_int_equal(count, 2);
	count = 4;
	assert_int_equal(nvml_compute_processes(0, NULL, NULL, &count, infos), NVML_SUCCESS);
	assert_int_equal(count, 2);
	assert_int_equal(infos[0].pid, 12);
	assert_int_equal(infos[0].usedGpuMemory, 300);
	assert_int_equal(infos[1].pid, 15);
	assert_int_equal(infos[1].usedGpuMemory, 250);
	count = 2;
	assert_int_equal(nvml_compute_processes_v1(0, NULL, NULL, &count, old), NVML_SUCCESS);
	assert_int_equal(old[1].pid, 15);
	assert_int_equal(old[1].usedGpuMemory, 250);
	assert_int_equal(nvml_compute_processes(0, NULL, NULL, NULL, infos),
			 NVML_ERROR_INVALID_ARGUMENT);
}

static void test_busy_is_of_what_it_may_reach(void **state)
{
	struct region_control_device *d;

	start();
	d = &fake_control->device[0];
	d->limit_pct_x100 = 3000;
	d->got_1s_pct_x100 = 1500;
	assert_int_equal(nvml_card_busy_pct(0), 50);
	d->got_1s_pct_x100 = 3100; /* its windows waver */
	assert_int_equal(nvml_card_busy_pct(0), 100);
	d->limit_pct_x100 = 10000;
	assert_int_equal(nvml_card_busy_pct(0), 31);
	assert_int_equal(nvml_card_memory_pct(0, 250), 25);
	assert_int_equal(nvml_card_memory_pct(0, 1001), 100);
}

static void test_processes_share_what_the_card_did(void **state)
{
	nvmlProcessUtilizationSample_t samples[4];
	unsigned int count = 4;

	start();
	fake_control->device[0].got_1s_pct_x100 = 8000;
	live(0, 10, 100)->recent_us = 300000;
	live(1, 11, 500)->recent_us = 100000;
	live(2, 12, 100);
	assert_int_equal(nvml_process_utilization(0, NULL, NULL, samples, &count, 0), NVML_SUCCESS);
	assert_int_equal(count, 2); /* a process without work has no sample */
	assert_int_equal(samples[0].pid, 10);
	assert_int_equal(samples[0].smUtil, 60);
	assert_int_equal(samples[1].smUtil, 20);
	assert_int_equal(samples[1].memUtil, 50);
	count = 1;
	assert_int_equal(nvml_process_utilization(0, NULL, NULL, samples, &count, 0),
			 NVML_ERROR_INSUFFICIENT_SIZE);
	assert_int_equal(count, 3);
	assert_int_equal(nvml_process_utilization(0, NULL, NULL, samples, &count, UINT64_MAX),
			 NVML_ERROR_NOT_FOUND);
	/* A process that has not ended a kernel yet: all of the time is its. */
	start();
	fake_control->device[0].got_1s_pct_x100 = 8000;
	live(0, 10, 100)->busy = 1;
	count = 4;
	assert_int_equal(nvml_process_utilization(0, NULL, NULL, samples, &count, 0), NVML_SUCCESS);
	assert_int_equal(samples[0].smUtil, 80);
}

static void expect_visible(const char *value, const char *during)
{
	setenv("CUDA_VISIBLE_DEVICES", value, 1);
	bool is_changed = visible_begin();
	assert_string_equal(getenv("CUDA_VISIBLE_DEVICES"), during);
	setenv("OTHER", value, 1); /* another thread's */
	visible_end(is_changed);
	assert_string_equal(getenv("CUDA_VISIBLE_DEVICES"), value);
}

static void test_numbers_count_the_tenants_devices(void **state)
{
#define FIRST "GPU-01000000-0000-0000-0000-000000000000"
#define SECOND "GPU-02000000-0000-0000-0000-000000000000"
	start();
	fake_control->device_count = 2;
	fake_control->device[0].uuid[0] = 1;
	fake_control->device[1].uuid[0] = 2;
	expect_visible("0", FIRST);
	expect_visible(" 1 ,+0", SECOND "," FIRST);
	expect_visible("01x,0", SECOND "," FIRST);
	expect_visible("0,2,1", FIRST);
	expect_visible("0,-1", FIRST);
	expect_visible("0,", FIRST);
	expect_visible("0," SECOND, FIRST);
	expect_visible("1,1", SECOND "," SECOND);
	expect_visible("-1", "");
	expect_visible("99999999999999999999", "");
	expect_visible("", "");
	expect_visible("none", "");
	expect_visible(SECOND ",0", SECOND);
	expect_visible(" gpu-02 ,GPU-01", " gpu-02 ,GPU-01");
	expect_visible(FIRST ",GPU-03," SECOND, FIRST);
	expect_visible(FIRST "0", "");
	fake_control->instances = 2;
	expect_visible("1", "MIG-02000000-0000-0000-0000-000000000000");
	expect_visible("0", FIRST);
}

static void expect_visible_unset(const char *during, const char *others)
{
	unsetenv("CUDA_VISIBLE_DEVICES");
	bool is_changed = visible_begin();
	assert_string_equal(getenv("CUDA_VISIBLE_DEVICES"), during);
	if (others)
		setenv("ANOTHER", others, 1); /* another thread's */
	visible_end(is_changed);
	assert_null(getenv("CUDA_VISIBLE_DEVICES"));
	assert_non_null(getenv("PATH"));
	if (others)
		assert_string_equal(getenv("ANOTHER"), others);
}

static void test_unset_means_the_tenants_devices(void **state)
{
	start();
	fake_control->device_count = 2;
	fake_control->device[0].uuid[0] = 1;
	fake_control->device[1].uuid[0] = 2;
	expect_visible_unset(FIRST "," SECOND, NULL);
	expect_visible_unset(FIRST "," SECOND, "a variable that was not there");
	fake_control->device_count = 0;
	assert_false(visible_begin());
	visible_end(false);
}

static bool is_right_in_a_child(const char *value)
{
	int status;
	pid_t pid = fork();

	if (pid == 0) {
		bool is_changed = visible_begin();
		bool is_right = is_changed && strcmp(getenv("CUDA_VISIBLE_DEVICES"), FIRST) == 0;
		visible_end(is_changed);
		const char *now = getenv("CUDA_VISIBLE_DEVICES");
		_exit(!(is_right && (value ? now && strcmp(now, value) == 0 : !now)));
	}
	return waitpid(pid, &status, 0) == pid && status == 0;
}

/* Another thread of the parent is in cuInit. */
static void test_a_child_forked_meanwhile_reads_what_the_program_set(void **state)
{
	start();
	fake_control->device_count = 1;
	fake_control->device[0].uuid[0] = 1;
	setenv("CUDA_VISIBLE_DEVICES", "0", 1);
	bool is_changed = visible_begin();
	assert_true(is_right_in_a_child("0"));
	visible_end(is_changed);
	unsetenv("CUDA_VISIBLE_DEVICES");
	is_changed = visible_begin();
	assert_true(is_right_in_a_child(NULL));
	visible_end(is_changed);
}

static nvmlReturn_t uuid_result;

static nvmlReturn_t report_uuid(nvmlDevice_t device, char *uuid, unsigned int length)
{
	if (uuid_result == NVML_SUCCESS)
		snprintf(uuid, length, "%s", FIRST);
	return uuid_result;
}

/* NVML 580 reports the UUID of no device that it had before nvmlShutdown and nvmlInit. */
static void test_a_device_whose_uuid_fails_later(void **state)
{
	nvmlDevice_t known = (nvmlDevice_t)0x100, other = (nvmlDevice_t)0x200;
	int card = -1;

	start();
	fake_control->device_count = 1;
	fake_control->device[0].uuid[0] = 1;
	real_nvml.nvmlDeviceGetUUID = report_uuid;
	uuid_result = NVML_ERROR_INVALID_ARGUMENT;
	assert_int_equal(nvml_card_of(known, &card), NVML_ERROR_INVALID_ARGUMENT);
	uuid_result = NVML_SUCCESS;
	assert_int_equal(nvml_card_of(known, &card), NVML_SUCCESS);
	uuid_result = NVML_ERROR_INSUFFICIENT_SIZE;
	card = -1;
	assert_int_equal(nvml_card_of(known, &card), NVML_SUCCESS);
	assert_int_equal(card, 0);
	assert_int_equal(nvml_card_of(other, &card), NVML_ERROR_INSUFFICIENT_SIZE);
	uuid_result = NVML_ERROR_UNINITIALIZED;
	assert_int_equal(nvml_card_of(known, &card), NVML_ERROR_UNINITIALIZED);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_device_whose_uuid_fails_later),
		cmocka_unit_test(test_lists_processes_with_contexts),
		cmocka_unit_test(test_busy_is_of_what_it_may_reach),
		cmocka_unit_test(test_processes_share_what_the_card_did),
		cmocka_unit_test(test_numbers_count_the_tenants_devices),
		cmocka_unit_test(test_unset_means_the_tenants_devices),
		cmocka_unit_test(test_a_child_forked_meanwhile_reads_what_the_program_set),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
