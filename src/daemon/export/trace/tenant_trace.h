/*
 * The tracing of one tenant (docs/reference/protocol.md, `trace`): which client traces it, the rings of the tenant's processes
 * (abi/shm/trace_ring.h), and up to which lease the leases on its cards have been reported. The daemon creates the rings and
 * passes them to the client; it does not read them. A tenant has at most one trace at a time. A trace ends with its session,
 * and may outlive the tenant. Main thread only.
 */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "base/error.h"
#include "daemon/export/trace/trace_clock.h"
#include "daemon/state/tenant.h"

#define TENANT_TRACE_WAITING_MAX 256 /* rings that were created and not yet passed on */
#define TENANT_TRACE_RINGS_MAX 1024  /* rings per trace; the client keeps all of them open */

struct tenant_trace;

/*
 * Tells the tenant's processes to start recording. `pid` and `uid` are the tracing client's. -EBUSY if the tenant is traced
 * already; the error names the other client. The caller owns *ret.
 */
int tenant_trace_begin(struct tenant *tenant, int pid, uid_t uid, struct tenant_trace **ret,
		       struct error *err);
/* Stops the recording and frees the trace. NULL is allowed; returns NULL. */
struct tenant_trace *tenant_trace_end(struct tenant_trace *trace);

/* The traced tenant; NULL if it has ended. */
struct tenant *tenant_trace_of(const struct tenant_trace *trace);
const char *tenant_trace_name(const struct tenant_trace *trace);
enum trace_clock tenant_trace_clock(const struct tenant_trace *trace);
/*
 * Returns where the trace keeps the number of the last lease of `device` that was reported. The caller updates it: see
 * lease_spans.h.
 */
uint64_t *tenant_trace_told(struct tenant_trace *trace, unsigned device);

/* Call when the tenant ends: detaches its trace, if any, which stays until its session ends. */
void tenant_trace_forget(struct tenant *tenant);

/*
 * Makes the ring of a process that asks for one. Returns a descriptor, owned by the trace until the ring is passed on. -ENOENT:
 * the tenant has no trace of number `order`. -EAGAIN: too many rings wait to be passed on, so the process may ask again.
 * -ENOSPC: TENANT_TRACE_RINGS_MAX rings were made. Other errors come from the system.
 */
int tenant_trace_join(struct tenant *tenant, const struct process *process, uint32_t order,
		      struct error *err);

/* A ring that is to be passed on to the client. */
struct trace_ring_given {
	unsigned number; /* starts at 1 */
	int pid;
	char name[16]; /* name of the process's program */
	int fd;        /* owned by the caller */
};

/* Takes the next ring from the queue. Returns false if there is none. */
bool tenant_trace_take(struct tenant_trace *trace, struct trace_ring_given *ret);
/* Whether process `pid` has asked for a ring since the trace began. */
bool tenant_trace_has(const struct tenant_trace *trace, int pid);
