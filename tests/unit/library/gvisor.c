/*
 * Preloaded beside the library in test_library: uname() and madvise() answer as in gVisor. GVISOR_NAME is its name for
 * itself: "old" for that of before April 2026.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "library/sys/sys.h"

ALLOT_EXPORT int uname(struct utsname *ret)
{
	const char *name = getenv("GVISOR_NAME");

	memset(ret, 0, sizeof(*ret));
	strcpy(ret->sysname, "Linux");
	strcpy(ret->release, name && !strcmp(name, "old") ? "4.4.0" : "4.19.0-gvisor");
	strcpy(ret->version, "#1 SMP Sun Jan 10 15:06:54 PST 2016");
	return 0;
}

ALLOT_EXPORT int madvise(void *start, size_t bytes, int advice)
{
	if (advice != MADV_WIPEONFORK)
		return (int)syscall(SYS_madvise, start, bytes, advice);
	errno = EINVAL;
	return -1;
}
