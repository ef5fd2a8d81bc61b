/*
 * Where something is served, as settings have it. Main thread only.
 *
 *     off   127.0.0.1:9400   [::1]:9400   0.0.0.0:9400   unix:/run/allot/metrics.sock
 */
#pragma once

#include <stdbool.h>
#include <sys/socket.h>

#include "base/error.h"

#define ADDRESS_TEXT_MAX 160

struct address {
	struct sockaddr_storage storage;
	socklen_t length; /* 0: off */
};

/* Pure. -EINVAL with what would be right. Names are not looked up: an address is given in numbers. */
int address_parse(const char *text, struct address *ret, struct error *err);

/* Whether only this machine can reach it: a unix socket, or an address of the loopback. Pure. */
bool address_is_local(const struct address *address);

/*
 * A listening socket, non-blocking; the caller's. A unix socket that nobody listens on any more is replaced;
 * `is_open`: everyone may connect to it. -EADDRINUSE and others, with the address.
 */
int address_listen(const struct address *address, bool is_open, int *ret_fd, struct error *err);
/* What the socket listens on, as in the setting; a port that was chosen is told. */
void address_print(int fd, char text[ADDRESS_TEXT_MAX]);
/* Removes the file of a unix socket that this process listens on. */
void address_forget(const struct address *address);
