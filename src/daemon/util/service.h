/*
 * What a service manager is told: that the daemon is ready, that it ends, and that its loop still turns. By
 * sd_notify(3)'s protocol, one datagram a message to the socket that $NOTIFY_SOCKET names, so that no library is
 * needed for it. Without that variable nothing is told. Main thread only.
 */
#pragma once

#include <stdint.h>

struct service;
struct loop;

/*
 * Reads the environment, and takes from it what is this process's alone. NULL when there is no service manager, or
 * none that can be reached (said in the log: a daemon goes on without).
 */
struct service *service_open(void);

/*
 * READY=1 with a line that `systemctl status` shows. Where the manager asked for a sign of life, the loop gives one
 * twice in each of its periods from now on. A NULL service is fine.
 */
void service_ready(struct service *service, struct loop *loop, const char *status);

/* STOPPING=1; frees it. NULL is fine; returns NULL. */
struct service *service_close(struct service *service);

/* $WATCHDOG_USEC and $WATCHDOG_PID as given: the period in ns, 0: no sign of life is asked of `pid`. Pure. */
uint64_t service_watchdog_ns(const char *usec, const char *watched_pid, int pid);
