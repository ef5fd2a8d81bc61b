/*
 * Reports exec events of all processes, by the kernel's process connector (Documentation/driver-api/connector.rst;
 * linux/cn_proc.h). A filter drops other events, so that forks and exits do not wake us. Needs CAP_NET_ADMIN and the host's
 * network and pid namespaces.
 */
#pragma once

/* Returns a non-blocking socket or -errno. */
int exec_events_open(void);
/* Returns the pid of the next exec, 0 if there is none now, -ENOBUFS if events were lost, or another -errno on failure. */
int exec_events_read(int fd);
