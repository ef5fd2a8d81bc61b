#include "library/loader/fast_path.h"

#include <sys/mman.h>

#ifndef MADV_WIPEONFORK
#define MADV_WIPEONFORK 18
#endif

struct fast_path fast_path;

void fast_path_prepare(void)
{
	if (madvise(&fast_path, sizeof(fast_path), MADV_WIPEONFORK) == 0)
		atomic_store(&fast_path.is_prepared, true);
}

void fast_path_shut(uint32_t devices)
{
	WITH_LOCK(&fast_path.lock);
	atomic_fetch_and(&fast_path.open, ~devices);
}
