/*
 * What a helper keeps, in a file of the run directory that it holds a lock on while it lives:
 *
 *     keeper 4711             its pid
 *     card 0 3221225472       bytes of each card that its processes take
 *     process 123 88123456    pid and start time
 *
 * One thread.
 */
#pragma once

#include "base/error.h"
#include "daemon/memory/checkpoint/helper_protocol.h"

/*
 * Opens and locks the file, made where there is none. A helper that holds it is told (SIGTERM) to let go: it
 * does so between two steps, which may take as long as its driver does. *ret_fd is the caller's. -errno.
 */
int helper_file_take(const char *path, int *ret_fd, struct error *err);

/* Writes what the order says. -errno. */
int helper_file_write(int fd, const struct helper_order *order);

/* Fills the cards and processes of *ret in; the rest is 0. What is not understood is left out. -errno. */
int helper_file_read(int fd, struct helper_order *ret);
