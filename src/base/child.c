#include "base/child.h"

#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#define MOST 65536

static void close_between(unsigned int first, unsigned int last)
{
	struct rlimit limit = { 0 };
#ifdef SYS_close_range
	if (syscall(SYS_close_range, first, last, 0U) == 0)
		return;
#endif
	getrlimit(RLIMIT_NOFILE, &limit);
	for (unsigned int fd = first; fd <= last && fd < limit.rlim_cur && fd < MOST; fd++)
		close((int)fd);
}

void child_close_from(int first)
{
	close_between((unsigned int)first, ~0U);
}

void child_close_others(int keep)
{
	child_close_from(keep + 1);
	if (keep > 0)
		close_between(0, (unsigned int)keep - 1);
}
