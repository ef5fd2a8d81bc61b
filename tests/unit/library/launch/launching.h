/*
 * Shared by the tests of gate and inflight: a process that launches through the gate, in the test's thread or in others, on a
 * driver whose work ends when the test says so; and the helper thread.
 */
#pragma once

#include "../test.h"

#include <pthread.h>

#include "../fake_driver.h"
#include "../fake_process.h"
#include "library/launch/gate.h"
#include "library/launch/inflight/inflight_settle.h"

#define KERNEL_NS (1 * NS_PER_MS)

/* A test that begins in free run with nothing in flight, and ends with the helper stopped. */
#define launching_test(name) cmocka_unit_test_setup_teardown(name, launching_start, launching_end)
int launching_start(void **state);
int launching_end(void **state);

/* The kernel that is launched. Each test has its own, because a kernel's learned length outlives a test. */
extern const void *launched_function;

/* Device 0 of this process: its slot in the shared report, and the library's own counts of work in flight. */
struct region_slot_device *own(void);
struct inflight_device *device(void);

/* Starts the helper thread, which calls inflight_poll() every 100 us until the test ends. */
void start_helper(void);

/* Launch one kernel through the gate. The driver returns success, or `result`, which launch_with() returns too. */
void launch(CUstream stream);
CUresult launch_with(CUstream stream, CUresult result);

/* Lets the gate learn how long the kernel takes, by launches that are seen to end. Leaves the lease in GO. */
void teach(CUstream stream);

/*
 * A thread that launches `limit` times; 0: until stopped. If a test fails before it joins the thread, the thread is stopped and
 * joined at the test's end.
 */
struct launcher {
	pthread_t thread;
	CUstream stream;
	_Atomic bool stop;
	_Atomic bool has_ended;
	_Atomic uint64_t launches;
	uint64_t limit;
	bool is_running; /* started, and not joined yet */
};
struct launcher *start_launcher(CUstream stream, uint64_t limit);
void join_launcher(struct launcher *l);

/* True when the word has the value within a second. */
bool becomes(const _Atomic uint32_t *word, uint32_t value);
