/*
 * gVisor (runsc) gives a container a kernel of its own, in which the library can't join a tenant: madvise(MADV_WIPEONFORK)
 * fails, futexes wake no process outside of the sandbox, and by default processes can't connect to sockets of the machine.
 */
#pragma once

#include <stdbool.h>
#include <string.h>

/*
 * Whether `text` comes from gVisor's kernel: the release or version of uname(2), or the line of /proc/version. Since April 2026
 * the release ends in "-gvisor". Since November 2018 the version is the one below (pkg/sentry/kernel/version/version.go).
 */
static inline bool gvisor_is_kernel(const char *text)
{
	return strstr(text, "-gvisor") || strstr(text, "#1 SMP Sun Jan 10 15:06:54 PST 2016");
}
