/*
 * A tenant that is traced (docs/reference/protocol.md, `trace`): its client, the rings of its processes (abi/shm/trace.h), and how
 * far its cards' leases have been told. The daemon makes the rings and hands them on; it reads nothing in them. One
 * trace a tenant at a time; it ends with its session, and outlives the tenant. Main thread only.
 */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "base/error.h"
#include "daemon/export/trace/trace_clock.h"
#include "daemon/state/tenant.h"

#define TENANT_TRACE_WAITING_MAX 256 /* rings that were made and not handed on yet */
#define TENANT_TRACE_RINGS_MAX 1024  /* of a trace: its reader keeps all of them open */

struct tenant_trace;

/*
 * Tells the tenant's processes to record from here on. `pid` and `uid` are of the client that traces. -EBUSY: it is
 * traced already; the error names that other client. The caller owns *ret.
 */
int tenant_trace_begin(struct tenant *tenant, int pid, uid_t uid, struct tenant_trace **ret,
		       struct error *err);
/* NULL is fine; returns NULL. */
struct tenant_trace *tenant_trace_end(struct tenant_trace *trace);

/* The traced tenant; NULL: it has ended. */
struct tenant *tenant_trace_of(const struct tenant_trace *trace);
const char *tenant_trace_name(const struct tenant_trace *trace);
enum trace_clock tenant_trace_clock(const struct tenant_trace *trace);
/* Number of the last lease told of the tenant's i-th device: see lease_spans.h. */
uint64_t *tenant_trace_told(struct tenant_trace *trace, unsigned device);

/* The tenant ends: its trace learns that. */
void tenant_trace_forget(struct tenant *tenant);

/*
 * A process asks for its ring. Returns a descriptor, which stays the trace's until it is handed on; -ENOENT: nobody
 * traces by that order; -EAGAIN: too many wait to be handed on, it may ask again; -ENOSPC: there were TENANT_TRACE_RINGS_MAX; or as the system
 * said.
 */
int tenant_trace_join(struct tenant *tenant, const struct process *process, uint32_t order,
		      struct error *err);

/* A ring that was not handed on yet. */
struct trace_ring_given {
	unsigned number; /* from 1 */
	int pid;
	char name[16]; /* its command's */
	int fd;        /* the caller's */
};

/* Takes the next one out. False: there is none. */
bool tenant_trace_take(struct tenant_trace *trace, struct trace_ring_given *ret);
/* Whether that process has asked for one since the trace began. */
bool tenant_trace_has(const struct tenant_trace *trace, int pid);
