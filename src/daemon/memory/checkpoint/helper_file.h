/*
 * The helper is the process that moves other processes off their GPUs (checkpoint_helper.h). Its state is in a file of the run
 * directory, on which it holds a lock while it lives:
 *
 *  keeper 4711             the helper's pid
 *  card 0 3221225472       a GPU, and the bytes that the moved processes need on it
 *  process 123 88123456    pid and start time of a moved process
 *
 * Single-threaded.
 */
#pragma once

#include "base/error.h"
#include "daemon/memory/checkpoint/helper_protocol.h"

/*
 * Opens or makes the file and locks it. If another helper holds the lock, asks it to end (SIGTERM) and waits for the end of its
 * current step, which may take long in the driver. The caller owns *ret_fd. Returns 0 or -errno.
 */
int helper_file_lock(const char *path, int *ret_fd, struct error *err);

/* Writes the order's GPUs and processes. Returns 0 or -errno. */
int helper_file_write(int fd, const struct helper_order *order);

/* Reads GPUs and processes, zeroes the other members of *ret, and skips unknown lines. Returns 0 or -errno. */
int helper_file_read(int fd, struct helper_order *ret);
