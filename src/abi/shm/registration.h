/*
 * How a process joins its tenant: one exchange on the tenant's unix socket (SOCK_SEQPACKET), after
 * which both sides close the connection. The daemon sees the process's death by its pidfd.
 *
 *   process -> daemon   struct registration_request, with SCM_CREDENTIALS added by the kernel
 *   daemon -> process   struct registration_reply; when status is 0, with two file descriptors
 *                       (SCM_RIGHTS): control, opened read-only, and report; a third, the swap
 *                       arena, where control says that there is one
 *
 * A process that registers again (the daemon was restarted, or the process forked) gets a slot of
 * its own; `previous_epoch` tells the daemon that usage is about to be carried over.
 */
#pragma once

#include <stdint.h>

#define REGISTRATION_MAGIC 0x676c6c61U /* "allg" */
#define REGISTRATION_VERSION 1U

struct registration_request {
	uint32_t magic;
	uint32_t version;
	int32_t pid; /* in the process's own pid namespace, for messages only: never trusted */
	uint32_t library_version; /* major << 16 | minor << 8 | patch; 0: of a library that does not tell */
	uint64_t previous_epoch; /* 0: first registration of this process */
};

struct registration_reply {
	uint32_t magic;
	uint32_t version;
	int32_t status;    /* 0, or a positive errno */
	uint32_t slot;     /* index into region_report.slot */
	uint64_t epoch;    /* as in region_control */
	char message[128]; /* why status is not 0: one line, NUL-terminated */
};
