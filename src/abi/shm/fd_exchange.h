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
	/* give the descriptor; if the process gave this key before, the new descriptor replaces the old one */
	SHARING_GIVE = 1,
	SHARING_TAKE = 2, /* get the descriptor; ENOENT if no process gives this key */
	SHARING_DROP = 3, /* stop giving */
};

struct sharing_request {
	uint32_t magic;
	uint32_t version;
	uint32_t op; /* enum sharing_op */
	uint32_t reserved;
	uint64_t key;   /* chosen by the giving process; never 0 */
	uint64_t bytes; /* size of the given memory */
};

struct sharing_reply {
	uint32_t magic;
	uint32_t version;
	int32_t status; /* 0, or a positive errno */
	uint32_t reserved;
	uint64_t bytes; /* the size that the giving process stated */
};
