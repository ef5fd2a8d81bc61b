#include "fake_process.h"

#include <linux/futex.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "library/entry/hook_pool.h"
#include "library/launch/report.h"
#include "library/process.h"
#include "library/state/helper.h"
#include "library/swap/fd_exchange_client.h"

static struct process_own own;
struct process_state process_state = { .own = &own };

struct region_control *fake_control;
struct region_report *fake_report;
_Atomic bool fake_local_cap_allows = true;
_Atomic uint32_t fake_wakes;
uint64_t fake_dropped_key;

static void *shared_memory(size_t size)
{
	void *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		abort();
	return p;
}

void fake_process_start(uint32_t slots)
{
	if (fake_control) {
		munmap(fake_control, sizeof(*fake_control));
		munmap(fake_report, sizeof(*fake_report));
	}
	fake_control = shared_memory(sizeof(*fake_control));
	fake_report = shared_memory(sizeof(*fake_report));
	fake_control->magic = fake_report->magic = REGION_MAGIC;
	fake_control->device_count = 1;
	atomic_store(&fake_control->slot_limit, slots);
	fake_control->device[0].lease = LEASE_FREE;
	fake_control->device[0].limit_pct_x100 = 10000;
	fake_control->device[0].quota_bytes = UINT64_MAX;
	fake_control->device[0].depth_ns = 4 * NS_PER_MS;
	fake_control->device[0].free_depth_ns = 50 * NS_PER_MS;
	fake_control->device[0].long_work_ns = 20 * NS_PER_MS;
	fake_control->device[0].idle_ns = NS_PER_MS;
	memset(&process_state, 0, sizeof(process_state));
	memset(&own, 0, sizeof(own));
	own.is_joined = own.has_one_device = true;
	atomic_store(&process_state.own, &own);
	atomic_store(&process_state.control, fake_control);
	atomic_store(&process_state.report, fake_report);
	fake_process_take_slot(0);
	atomic_store(&fake_local_cap_allows, true);
	atomic_store(&process_state.mode, PROCESS_ACTIVE);
}

void fd_exchange_delete(uint64_t key)
{
	fake_dropped_key = key;
}

void fake_process_take_slot(uint32_t slot)
{
	atomic_store(&process_state.slot, &fake_report->slot[slot]);
	atomic_store(&process_state.turn, slot + 1);
}

void fake_process_clear_slot(uint32_t slot)
{
	memset(&fake_report->slot[slot], 0, sizeof(fake_report->slot[slot]));
}

void fake_process_set_lease(enum lease_state state)
{
	_Atomic uint32_t *word = &fake_control->device[0].lease;

	atomic_store(word, (atomic_load(word) & ~LEASE_STATE_MASK) + LEASE_SEQUENCE_STEP +
				   (uint32_t)state);
	syscall(SYS_futex, word, FUTEX_WAKE, INT32_MAX, NULL, NULL, 0);
}

void fake_process_set_turn(uint32_t turn)
{
	atomic_store(&fake_control->device[0].turn, turn);
	fake_process_set_lease(lease_state_of(atomic_load(&fake_control->device[0].lease)));
}

uint64_t fake_process_used(void)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < fake_control->slot_limit; i++)
		sum += atomic_load(&fake_report->slot[i].device[0].used_bytes);
	return sum;
}

/* ---- stand-ins for process_state.c, process.c, helper.c, report.c, hook_pool.c and hook_ipc.c ---- */

enum process_mode process_join(void)
{
	return PROCESS_ACTIVE;
}

bool process_device_exists(CUdevice device)
{
	return true;
}

int process_device_index(CUdevice device)
{
	return device;
}

int process_current_index(void)
{
	return 0;
}

bool helper_start(void)
{
	return true;
}

void helper_wake(void)
{
	atomic_fetch_add(&fake_wakes, 1);
}

/* These two are weak, so that tests can link report.c. */
__attribute__((weak)) void report_end_of_work(int index)
{
}

__attribute__((weak)) bool report_local_cap_allows(int index)
{
	return atomic_load(&fake_local_cap_allows);
}

void hook_pool_freed_import(CUdeviceptr ptr)
{
}
