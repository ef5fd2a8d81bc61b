/*
 * An address to listen at, as written in settings. Main thread only.
 *
 *   off   127.0.0.1:9400   [::1]:9400   0.0.0.0:9400   unix:/run/allot/metrics.sock
 */
#pragma once

#include <stdbool.h>
#include <sys/socket.h>

#include "base/error.h"

#define ADDRESS_TEXT_MAX 160

struct address {
	struct sockaddr_storage storage;
	socklen_t length; /* 0 if "off" */
};

/* IP addresses must be numeric: names are not looked up. -EINVAL with an error that says what is accepted. Pure. */
int address_parse(const char *text, struct address *ret, struct error *err);

/* True if only this machine can reach the address: a unix socket, a loopback address, or "off". Pure. */
bool address_is_local(const struct address *address);

/*
 * Makes a non-blocking listening socket, owned by the caller. Replaces the file of a unix socket on which nobody listens any
 * more. `is_open` lets everyone connect to a unix socket.
 */
int address_listen(const struct address *address, bool is_open, int *ret_fd, struct error *err);
/* Writes the address of a listening socket in the form of a setting, with the actual port if the kernel chose it. */
void address_print(int fd, char text[ADDRESS_TEXT_MAX]);
/* Removes the file of a unix socket on which this process listens. Does nothing for other addresses. */
void address_unlink(const struct address *address);
