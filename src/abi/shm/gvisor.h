/*
 * gVisor (runsc) gives a container a kernel of its own, in which the library can't join a tenant. madvise(MADV_WIPEONFORK) fails,
 * by default no process connects to a socket of the machine, and futexes wake nobody outside of the sandbox.
 */
#pragma once

#include <stdbool.h>
#include <string.h>

/*
 * Whether `text`, the release or version from uname(2) or the line of /proc/version, is gVisor's. Its release ends in "-gvisor"
 * since April 2026. All its releases since November 2018 have this version (pkg/sentry/kernel/version/version.go).
 */
static inline bool gvisor_is_kernel(const char *text)
{
	return strstr(text, "-gvisor") || strstr(text, "#1 SMP Sun Jan 10 15:06:54 PST 2016");
}
