#include "library/loader/fast_path.h"

#include "library/sys/locks.h"

struct fast_path fast_path;

void fast_path_prepare(void)
{
	if (madvise(&fast_path, sizeof(fast_path), MADV_WIPEONFORK) == 0)
		atomic_store(&fast_path.is_prepared, true);
}

void fast_path_close(uint32_t devices)
{
	WITH_LOCK(&locks.fast_path);
	atomic_fetch_and(&fast_path.open, ~devices);
}
