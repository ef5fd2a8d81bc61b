/*
 * The process connector (kernel's Documentation/driver-api/connector.rst, linux/cn_proc.h): the kernel says
 * who begins a program. Of all its events the socket's filter lets exec alone pass, so forks and
 * ends wake nobody. Needs CAP_NET_ADMIN and the host's network and pid namespaces.
 */
#pragma once

/* A socket, not blocking, or -errno. */
int exec_events_open(void);
/*
 * The next process that began a program; 0 when there is none for now; -ENOBUFS: some were lost;
 * another -errno: it is broken.
 */
int exec_events_read(int fd);
