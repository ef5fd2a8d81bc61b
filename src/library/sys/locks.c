#include "library/sys/locks.h"

struct locks locks;

bool locks_prepare(void)
{
	int saved = errno;
	bool is_done = madvise(&locks, sizeof(locks), MADV_WIPEONFORK) == 0;

	errno = saved;
	return is_done;
}

__attribute__((constructor)) static void prepare_at_load(void)
{
	locks_prepare();
}
