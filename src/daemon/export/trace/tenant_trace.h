/*
 * The trace of one tenant (docs/reference/protocol.md, `trace`): the client that reads it, the rings into which the tenant's
 * processes write events (abi/shm/trace_ring.h), and which leases were reported. The daemon makes the rings and passes them to
 * the client, but does not read them. A tenant has at most one trace, which ends with the client's session and may outlive the
 * tenant. Main thread only.
 */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "base/error.h"
#include "daemon/export/trace/trace_clock.h"
#include "daemon/state/tenant.h"

#define TENANT_TRACE_WAITING_MAX 256 /* most rings that wait to be passed on */
#define TENANT_TRACE_RINGS_MAX 1024  /* most rings of a trace; the client keeps all of them open */

struct tenant_trace;

/*
 * Begins a trace: the tenant's processes start to record. `pid` and `uid` are the client's. Returns -EBUSY if the tenant is
 * already traced; err names the other client. The caller owns *ret.
 */
int tenant_trace_begin(struct tenant *tenant, int pid, uid_t uid, struct tenant_trace **ret,
		       struct error *err);
/* Stops the recording and frees the trace. NULL is allowed; returns NULL. */
struct tenant_trace *tenant_trace_end(struct tenant_trace *trace);

/* Returns the traced tenant; NULL if it has ended. */
struct tenant *tenant_trace_of(const struct tenant_trace *trace);
const char *tenant_trace_name(const struct tenant_trace *trace);
enum trace_clock tenant_trace_clock(const struct tenant_trace *trace);
/* The number of the last lease of `device` that was reported (lease_spans.h), for the caller to update. */
uint64_t *tenant_trace_spans_sent(struct tenant_trace *trace, unsigned device);

/* Detaches the trace, if any, from a tenant that ends. The trace stays until the client's session ends. */
void tenant_trace_forget(struct tenant *tenant);

/*
 * Makes a ring for a process. Returns a descriptor, which the trace owns until it is passed on to the client. Returns -ENOENT
 * if the tenant is not traced or its trace's number is not `order` (region.h: trace); -EAGAIN if too many rings wait to be
 * passed on; -ENOSPC beyond TENANT_TRACE_RINGS_MAX; or another -errno.
 */
int tenant_trace_join(struct tenant *tenant, const struct process *process, uint32_t order,
		      struct error *err);

struct trace_ring_given {
	unsigned number; /* number of the ring, from 1 */
	int pid;
	char name[16]; /* name of the process's program */
	int fd;        /* the ring's memory; the caller of tenant_trace_next_ring() closes it */
};

/* Takes the next ring to pass on. Returns false if there is none. */
bool tenant_trace_next_ring(struct tenant_trace *trace, struct trace_ring_given *ret);
/* Returns true if the process asked for a ring since the trace began. */
bool tenant_trace_has(const struct tenant_trace *trace, int pid);
