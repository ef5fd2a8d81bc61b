#include "library/state/helper.h"

#include <stdlib.h>
#include <sys/prctl.h>

#include "library/loader/real.h"
#include "library/state/thread.h"
#include "library/sys/log.h"
#include "library/sys/locks.h"

static const struct helper_duties *duties;
static bool is_started;
static _Atomic bool is_leaving;
static _Atomic bool is_in_driver;
static _Atomic uint32_t bell;
/* Waking the helper thread takes a system call only while it sleeps. */
static _Atomic bool is_asleep;

void helper_assign(const struct helper_duties *own)
{
	duties = own;
}

static void *helper_main(void *unused)
{
	CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
	uint32_t rings = 0;

	prctl(PR_SET_TIMERSLACK, 1000UL, 0, 0, 0);
	prctl(PR_SET_NAME, "allot", 0, 0, 0);
	if (real.cuThreadExchangeStreamCaptureMode)
		real.cuThreadExchangeStreamCaptureMode(&mode);
	for (;;) {
		uint32_t rings_now = atomic_load(&bell);

		bool was_woken = rings != rings_now;

		rings = rings_now;
		atomic_store(&is_in_driver, true);
		if (atomic_load(&is_leaving)) {
			atomic_store(&is_in_driver, false);
			return NULL;
		}
		uint64_t sleep_ns = duties->poll(was_woken);
		atomic_store(&is_in_driver, false);
		atomic_store(&is_asleep, true);
		if (atomic_load(&bell) == rings)
			sys_futex_wait(&bell, rings, sleep_ns, false);
		atomic_store(&is_asleep, false);
	}
}

void helper_wake(void)
{
	atomic_fetch_add(&bell, 1);
	if (atomic_load(&is_asleep))
		sys_futex_wake(&bell, 1);
}

bool helper_start(void)
{
	WITH_LOCK(&locks.helper_start);
	if (is_started)
		return true;
	if (!thread_create(helper_main)) {
		log_refusal(
			"no GPU for this process: the library's helper thread can't be started; "
			"raise the limit of threads (ulimit -u), or let the seccomp filter allow clone");
		return false;
	}
	is_started = true;
	atexit(duties->on_exit);
	duties->on_start();
	return true;
}

void helper_stop(void)
{
	atomic_store(&is_leaving, true);
}

void helper_wait_for_poll(void)
{
	for (int i = 0; i < 200 && atomic_load(&is_in_driver); i++)
		sys_sleep_ns(100 * NS_PER_US);
}

void helper_reset(void)
{
	is_started = false;
	atomic_store(&is_leaving, false);
	atomic_store(&is_in_driver, false);
	atomic_store(&is_asleep, false);
}
