#include "base/child.h"

#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#define MOST 65536 /* if the kernel lacks close_range(), only descriptors below this are closed */

void child_close_others(int keep)
{
	struct rlimit limit = { 0 };
#ifdef SYS_close_range
	if (syscall(SYS_close_range, keep + 1, ~0U, 0) == 0 &&
	    (keep == 0 || syscall(SYS_close_range, 0, keep - 1, 0) == 0))
		return;
#endif
	getrlimit(RLIMIT_NOFILE, &limit);
	for (int i = 0; i < (limit.rlim_cur < MOST ? (int)limit.rlim_cur : MOST); i++)
		if (i != keep)
			close(i);
}
