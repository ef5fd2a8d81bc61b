/*
 * Notifies a service manager that the daemon is ready, that it is ending, and that its event loop
 * runs. Uses sd_notify(3)'s protocol without a library: one datagram per message to the socket in
 * $NOTIFY_SOCKET. Does nothing if that variable is not set. Main thread only.
 */
#pragma once

#include <stdint.h>

struct service;
struct loop;

/*
 * Reads the service manager's variables from the environment, and removes them, because they are
 * not for child processes. Returns NULL if there is no service manager. If it cannot be reached,
 * also returns NULL, and logs that: the daemon continues without it.
 */
struct service *service_open(void);

/*
 * Sends READY=1 with a line that `systemctl status` shows. If the manager requires watchdog
 * messages, the loop sends two per period from now on. `service` may be NULL.
 */
void service_ready(struct service *service, struct loop *loop, const char *status);

/* Sends STOPPING=1 and frees the service. NULL is allowed; returns NULL. */
struct service *service_close(struct service *service);

/*
 * Returns the watchdog period in ns, from the values of $WATCHDOG_USEC and $WATCHDOG_PID; 0 if `pid` needs no watchdog
 * messages. Pure.
 */
uint64_t service_watchdog_ns(const char *usec, const char *watched_pid, int pid);
