/*
 * Events of the process connector (Documentation/driver-api/connector.rst of the kernel,
 * linux/cn_proc.h): the kernel reports each exec. A socket filter drops all other events, so forks
 * and exits cause no wake-up. Needs CAP_NET_ADMIN and the host's network and pid namespaces.
 */
#pragma once

/* Returns a non-blocking socket, or -errno. */
int exec_events_open(void);
/*
 * Returns the pid of the next process that called exec, 0 if there is none now, -ENOBUFS if events
 * were lost, or another -errno if the socket is unusable.
 */
int exec_events_read(int fd);
