#include "library/loader/door.h"

#include <sys/mman.h>

#ifndef MADV_WIPEONFORK
#define MADV_WIPEONFORK 18
#endif

struct door door;

void door_prepare(void)
{
	if (madvise(&door, sizeof(door), MADV_WIPEONFORK) == 0)
		atomic_store(&door.is_prepared, true);
}

void door_shut(uint32_t devices)
{
	WITH_LOCK(&door.lock);
	atomic_fetch_and(&door.open, ~devices);
}
