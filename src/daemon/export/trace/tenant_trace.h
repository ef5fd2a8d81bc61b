/*
 * A tenant that is being traced (docs/reference/protocol.md, `trace`): the client, the rings of the tenant's processes
 * (abi/shm/trace.h), and how far the leases of its cards have been reported. The daemon creates the rings and passes them on;
 * it does not read them. A tenant has at most one trace at a time. A trace ends with its session, and may outlive the tenant.
 * Main thread only.
 */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "base/error.h"
#include "daemon/export/trace/trace_clock.h"
#include "daemon/state/tenant.h"

#define TENANT_TRACE_WAITING_MAX 256 /* rings that were created and not yet passed on */
#define TENANT_TRACE_RINGS_MAX 1024  /* per trace; the reader keeps all of them open */

struct tenant_trace;

/*
 * Tells the tenant's processes to start recording. `pid` and `uid` are the tracing client's. -EBUSY if the tenant is traced
 * already; the error names the other client. The caller owns *ret.
 */
int tenant_trace_begin(struct tenant *tenant, int pid, uid_t uid, struct tenant_trace **ret,
		       struct error *err);
/* NULL is fine; returns NULL. */
struct tenant_trace *tenant_trace_end(struct tenant_trace *trace);

/* The traced tenant; NULL if it has ended. */
struct tenant *tenant_trace_of(const struct tenant_trace *trace);
const char *tenant_trace_name(const struct tenant_trace *trace);
enum trace_clock tenant_trace_clock(const struct tenant_trace *trace);
/* Number of the last lease reported for the tenant's device of that index: see lease_spans.h. */
uint64_t *tenant_trace_told(struct tenant_trace *trace, unsigned device);

/* To be called when the tenant ends; informs its trace. */
void tenant_trace_forget(struct tenant *tenant);

/*
 * Makes the ring of a process that asks for one. Returns a descriptor, owned by the trace until the ring is passed on. -ENOENT
 * if no trace has that order; -EAGAIN if too many rings wait to be passed on: the process may ask again; -ENOSPC after
 * TENANT_TRACE_RINGS_MAX rings; other errors of the system.
 */
int tenant_trace_join(struct tenant *tenant, const struct process *process, uint32_t order,
		      struct error *err);

/* A ring to be passed on to the client. */
struct trace_ring_given {
	unsigned number; /* starts at 1 */
	int pid;
	char name[16]; /* of the process's command */
	int fd;        /* owned by the caller */
};

/* Takes the next ring from the queue. Returns false if there is none. */
bool tenant_trace_take(struct tenant_trace *trace, struct trace_ring_given *ret);
/* Has that process asked for a ring since the trace began? */
bool tenant_trace_has(const struct tenant_trace *trace, int pid);
