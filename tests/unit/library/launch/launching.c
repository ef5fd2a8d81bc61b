#include "launching.h"

#include "library/launch/fast_path_pass.h"

const void *launched_function = (const void *)0xf00;

struct region_slot_device *own(void)
{
	return &fake_report->slot[0].device[0];
}

struct inflight_device *device(void)
{
	return &inflight_devices[0];
}

/* ---- the helper ---- */

static _Atomic bool helper_runs;
static pthread_t helper;

static void *play_helper(void *unused)
{
	while (helper_runs) {
		inflight_poll(sys_now_ns(), 0, 0);
		usleep(100);
	}
	return NULL;
}

void start_helper(void)
{
	helper_runs = true;
	assert_int_equal(pthread_create(&helper, NULL, play_helper, NULL), 0);
}

static void stop_helper(void)
{
	if (helper_runs) {
		helper_runs = false;
		pthread_join(helper, NULL);
	}
}

/* ---- the driver's launch ---- */

static __thread CUresult ends_with;

static CUresult launch_kernel(CUfunction f, unsigned int gx, unsigned int gy, unsigned int gz,
			      unsigned int bx, unsigned int by, unsigned int bz,
			      unsigned int shared_bytes, CUstream stream, void **params,
			      void **extra)
{
	if (ends_with == CUDA_SUCCESS)
		fake_launch(stream);
	return ends_with;
}

int launching_start(void **state)
{
	launched_function = (const char *)launched_function + 64;
	inflight_reset();
	fake_driver_start();
	real.cuLaunchKernel = launch_kernel;
	fake_process_start(1);
	fast_path_prepare();
	fast_path_close(FAST_PATH_ALL);
	fake_elapsed_us = KERNEL_NS / NS_PER_US;
	return 0;
}

#define LAUNCHERS 8
static struct launcher launchers[LAUNCHERS];

/* State that a failed test leaves: a thread may be at the gate, where no work ends any more. */
static void end_launcher(struct launcher *l)
{
	l->stop = true;
	fake_local_cap_allows = true;
	while (!l->has_ended) {
		fake_process_set_lease(LEASE_FREE);
		fake_complete_all();
		inflight_poll(sys_now_ns(), 1, 0);
		usleep(100);
	}
	join_launcher(l);
}

int launching_end(void **state)
{
	stop_helper();
	for (int i = 0; i < LAUNCHERS; i++)
		if (launchers[i].is_running)
			end_launcher(&launchers[i]);
	return 0;
}

/* ---- launching ---- */

/* As the wrappers do it. */
CUresult launch_with(CUstream stream, CUresult result)
{
	struct work w = fake_kernel(stream, launched_function);
	struct inflight_stream *s = fast_path_pass(stream);
	struct gate_pass pass;

	ends_with = result;
	if (s)
		return fast_path_leave(s, fast_path.real.cuLaunchKernel(
						  (CUfunction)(uintptr_t)w.subject,
						  (unsigned)w.blocks, 1, 1, (unsigned)w.threads, 1,
						  1, 0, stream, NULL, NULL));
	gate_enter(&pass, &w);
	if (result == CUDA_SUCCESS)
		fake_launch(stream);
	gate_leave(&pass, &w, result);
	return result;
}

void launch(CUstream stream)
{
	launch_with(stream, CUDA_SUCCESS);
}

void teach(CUstream stream)
{
	fake_process_set_lease(LEASE_GO);
	for (int i = 0; i < 4; i++) {
		launch(stream);
		fake_complete_all();
		inflight_poll(sys_now_ns(), 1, 0);
	}
	inflight_poll(sys_now_ns(), 1, 0);
	assert_int_equal(device()->inflight, 0);
	assert_int_equal(device()->inflight_ns, 0);
}

static void *launch_on(void *context)
{
	struct launcher *l = context;

	while (!l->stop && (!l->limit || l->launches < l->limit)) {
		launch(l->stream);
		l->launches++;
	}
	l->has_ended = true;
	return NULL;
}

struct launcher *start_launcher(CUstream stream, uint64_t limit)
{
	struct launcher *l = launchers;

	while (l < launchers + LAUNCHERS && l->is_running)
		l++;
	assert_true(l < launchers + LAUNCHERS);
	memset(l, 0, sizeof(*l));
	l->stream = stream;
	l->limit = limit;
	assert_int_equal(pthread_create(&l->thread, NULL, launch_on, l), 0);
	l->is_running = true;
	return l;
}

void join_launcher(struct launcher *l)
{
	assert_int_equal(pthread_join(l->thread, NULL), 0);
	l->is_running = false;
}

bool becomes(const _Atomic uint32_t *word, uint32_t value)
{
	for (int i = 0; i < 1000; i++) {
		if (atomic_load(word) == value)
			return true;
		usleep(1000);
	}
	return false;
}
