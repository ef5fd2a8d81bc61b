/*
 * Exec events of the process connector (kernel, Documentation/driver-api/connector.rst; linux/cn_proc.h). A filter drops
 * all others, so forks and exits wake nobody. Needs CAP_NET_ADMIN and the host's network and pid namespaces.
 */
#pragma once

/* Returns a non-blocking socket or -errno. */
int exec_events_open(void);
/* Returns the pid of the next exec, 0: none now, -ENOBUFS: events were lost, or another -errno: unusable. */
int exec_events_read(int fd);
