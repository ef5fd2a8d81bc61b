/*
 * How processes of a tenant share memory for which legacy IPC has no handle (library/swap/ipc_broker.h): by descriptors, which
 * the daemon keeps. Each exchange uses the tenant's socket, as in registration.h:
 *
 *   process -> daemon   struct sharing_request; SHARING_GIVE comes with the descriptor
 *   daemon -> process   struct sharing_reply; the reply to SHARING_TAKE comes with a descriptor of the same memory
 *
 * The daemon identifies the process by its credentials, as in registration.h. When a process ends, the daemon closes what that
 * process gave.
 */
#pragma once

#include <stdint.h>

#define SHARING_MAGIC 0x736c6c61U /* "alls" */
#define SHARING_VERSION 1U

enum sharing_op {
	/* give a descriptor; replaces the one that the process gave for the same key before */
	SHARING_GIVE = 1,
	SHARING_TAKE = 2, /* get a descriptor; ENOENT if no process gives this key */
	SHARING_DROP = 3, /* stop giving the descriptor of this key */
};

struct sharing_request {
	uint32_t magic;
	uint32_t version;
	uint32_t op; /* enum sharing_op */
	uint32_t reserved;
	uint64_t key; /* chosen by the giving process; never 0 */
	uint64_t bytes;
};

struct sharing_reply {
	uint32_t magic;
	uint32_t version;
	int32_t status; /* 0, or a positive errno */
	uint32_t reserved;
	uint64_t bytes; /* size that the giving process stated */
};
