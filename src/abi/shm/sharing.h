/*
 * How processes of a tenant hand each other memory that legacy IPC has no handle for (library/swap/ipc_broker.h): by
 * descriptors, which the daemon keeps. An exchange each on the tenant's socket, as in registration.h:
 *
 *   process -> daemon   struct sharing_request; to give, with the descriptor
 *   daemon -> process   struct sharing_reply; to one that takes, with a descriptor of the same
 *
 * The daemon knows the process by its credentials, as in registration.h. What a process gave goes with it.
 */
#pragma once

#include <stdint.h>

#define SHARING_MAGIC 0x736c6c61U /* "alls" */
#define SHARING_VERSION 1U

enum sharing_op {
	SHARING_GIVE = 1, /* the same key again, by the same process: in place of what was there */
	SHARING_TAKE = 2, /* ENOENT: nobody gives it */
	SHARING_DROP = 3, /* is given no longer */
};

struct sharing_request {
	uint32_t magic;
	uint32_t version;
	uint32_t op; /* enum sharing_op */
	uint32_t reserved;
	uint64_t key;   /* drawn by whoever gives; never 0 */
	uint64_t bytes; /* to give */
};

struct sharing_reply {
	uint32_t magic;
	uint32_t version;
	int32_t status; /* 0, or a positive errno */
	uint32_t reserved;
	uint64_t bytes; /* as given */
};
