/*
 * Tells a service manager that the daemon is ready, that its event loop runs, and that it is ending. The protocol is
 * sd_notify(3): one datagram per message to the socket in $NOTIFY_SOCKET. Main thread only.
 */
#pragma once

#include <stdint.h>

struct service;
struct loop;

/*
 * Reads the service manager's environment variables and connects to $NOTIFY_SOCKET. Removes the variables from the
 * environment, because they are not for child processes. Returns NULL if there is no manager, or if it cannot be reached
 * (which is logged).
 */
struct service *service_open(void);

/*
 * Sends READY=1 with a line for `systemctl status`. If the manager wants watchdog messages, the loop then sends two per
 * period. `service` may be NULL.
 */
void service_ready(struct service *service, struct loop *loop, const char *status);

/* Sends STOPPING=1 and frees `service`, which may be NULL. Returns NULL. */
struct service *service_close(struct service *service);

/* Returns the watchdog period in ns from the values of $WATCHDOG_USEC and $WATCHDOG_PID; 0 if `pid` is not watched. Pure. */
uint64_t service_watchdog_ns(const char *usec, const char *watched_pid, int pid);
