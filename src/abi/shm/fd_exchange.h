/*
 * Processes of a tenant share memory by file descriptors if legacy IPC has no handle for the memory
 * (library/swap/ipc_broker.h). The daemon keeps each descriptor under a key until the process that stored it ends. Each
 * exchange uses the tenant's socket, as in registration.h:
 *
 *   process -> daemon   struct fd_exchange_request; FD_EXCHANGE_PUT comes with the descriptor
 *   daemon -> process   struct fd_exchange_reply; the reply to FD_EXCHANGE_GET comes with a descriptor of the same memory
 *
 * The kernel tells the daemon which process sent the request (SCM_CREDENTIALS).
 */
#pragma once

#include <stdint.h>

#define FD_EXCHANGE_MAGIC 0x736c6c61U /* "alls" */
#define FD_EXCHANGE_VERSION 1U

enum fd_exchange_op {
	/* Stores a descriptor under the key. Replaces the descriptor that this process stored under the key before, if any. */
	FD_EXCHANGE_PUT = 1,
	FD_EXCHANGE_GET = 2,    /* ENOENT if no process has stored this key */
	FD_EXCHANGE_DELETE = 3, /* deletes a key that this process has stored */
};

struct fd_exchange_request {
	uint32_t magic;
	uint32_t version;
	uint32_t op; /* enum fd_exchange_op */
	uint32_t reserved;
	uint64_t key; /* chosen by the process that stores it; never 0 */
	uint64_t bytes;
};

struct fd_exchange_reply {
	uint32_t magic;
	uint32_t version;
	int32_t status; /* 0, or a positive errno */
	uint32_t reserved;
	uint64_t bytes; /* as stated with FD_EXCHANGE_PUT */
};
