/*
 * The state of a helper (checkpoint_helper.h), in a file of the run directory. The helper holds a
 * lock on the file while it lives:
 *
 *  keeper 4711             the helper's pid
 *  card 0 3221225472       bytes of each card that its processes take
 *  process 123 88123456    pid and start time of each of its processes
 *
 * Single-threaded.
 */
#pragma once

#include "base/error.h"
#include "daemon/memory/checkpoint/helper_protocol.h"

/*
 * Opens and locks the file; creates it if there is none. If another helper holds the lock, asks
 * that helper to end (SIGTERM) and waits for the lock. That helper ends between two steps, and a
 * step may take as long as the driver does. The caller owns *ret_fd. Returns 0 or -errno.
 */
int helper_file_take(const char *path, int *ret_fd, struct error *err);

/* Writes the order's cards and processes. Returns 0 or -errno. */
int helper_file_write(int fd, const struct helper_order *order);

/*
 * Reads the cards and processes into *ret and zeroes the rest. Skips lines that it does not
 * understand. Returns 0 or -errno.
 */
int helper_file_read(int fd, struct helper_order *ret);
