#include "fake_clock.h"

#include <stdatomic.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "library/sys/sys.h"

static _Atomic uint64_t reads, jump_at = UINT64_MAX, jump_ns;

/* In place of libc's. */
int clock_gettime(clockid_t clock, struct timespec *t)
{
	int result = (int)syscall(SYS_clock_gettime, clock, t);

	if (clock != CLOCK_MONOTONIC || atomic_fetch_add(&reads, 1) < atomic_load(&jump_at))
		return result;
	uint64_t ns = (uint64_t)t->tv_nsec + atomic_load(&jump_ns);
	t->tv_sec += (time_t)(ns / NS_PER_S);
	t->tv_nsec = (long)(ns % NS_PER_S);
	return result;
}

void fake_clock_jump_after(uint64_t count, uint64_t ns)
{
	atomic_store(&jump_ns, ns);
	atomic_store(&jump_at, atomic_load(&reads) + count);
}

uint64_t fake_clock_reads(void)
{
	return atomic_load(&reads);
}
