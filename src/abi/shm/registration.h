/*
 * How a process joins its tenant: one exchange on the tenant's unix socket (SOCK_SEQPACKET), after which both sides close the
 * connection. The daemon learns of the process's death by a pidfd.
 *
 *   process -> daemon   struct registration_request; the kernel adds SCM_CREDENTIALS
 *   daemon -> process   struct registration_reply; if status is 0, with two file descriptors (SCM_RIGHTS): control, opened
 *                       read-only, and report. A third descriptor is the swap arena, if region_control.arena_bytes is not 0.
 *
 * A process that registers again (after a restart of the daemon, or after a fork) gets its own new slot. `previous_epoch` tells
 * the daemon that the process will copy its usage from its old slot.
 */
#pragma once

#include <stdint.h>

#define REGISTRATION_MAGIC 0x676c6c61U /* "allg" */
#define REGISTRATION_VERSION 1U

struct registration_request {
	uint32_t magic;
	uint32_t version;
	int32_t pid; /* in the process's own pid namespace; untrusted, only for messages */
	/* major << 16 | minor << 8 | patch; 0 from a library that does not send its version */
	uint32_t library_version;
	/* `epoch` of the process's previous registration; 0 if none */
	uint64_t previous_epoch;
};

struct registration_reply {
	uint32_t magic;
	uint32_t version;
	int32_t status; /* 0, or a positive errno */
	uint32_t slot;
	uint64_t epoch;    /* region_control.epoch */
	char message[128]; /* the reason if status is not 0: one line, NUL-terminated */
};
