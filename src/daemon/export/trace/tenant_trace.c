#include "daemon/export/trace/tenant_trace.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "abi/shm/trace_ring.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"
#include "daemon/util/procfs.h"

#define PIDS_STEP 64
#define MIX 2654435761U /* Makes the first trace numbers of two daemons differ. */

struct tenant_trace {
	struct tenant *tenant; /* NULL: the tenant has ended */
	struct arbitration *watched[REGION_MAX_DEVICES];
	unsigned watched_count;
	char name[REGION_NAME_MAX];
	uint32_t order;
	int by_pid;
	uid_t by_uid;
	uint64_t spans_sent[REGION_MAX_DEVICES];
	struct trace_ring_given waiting[TENANT_TRACE_WAITING_MAX]; /* oldest first */
	unsigned waiting_count, ring_count;
	int *pids; /* pids of processes that asked for a ring */
	size_t pid_count, pid_size;
};

struct tenant *tenant_trace_of(const struct tenant_trace *trace)
{
	return trace->tenant;
}

const char *tenant_trace_name(const struct tenant_trace *trace)
{
	return trace->name;
}

enum trace_clock tenant_trace_clock(const struct tenant_trace *trace)
{
	return trace_clock_of(trace->order);
}

uint64_t *tenant_trace_spans_sent(struct tenant_trace *trace, unsigned device)
{
	return &trace->spans_sent[device];
}

/* The trace will not report leases that ended before this call. */
static int watch(struct tenant_trace *trace, struct error *err)
{
	struct tenant *tenant = trace->tenant;
	uint64_t now_ns = clock_now_ns();
	for (unsigned i = 0; i < tenant->terms.device_count; i++) {
		struct lease_span spans[LEASE_SPANS_MAX];
		struct arbitration *a = tenant->terms.device[i].card->arbitration;
		int r = arbitration_watch_spans(a, true);
		trace->watched[trace->watched_count++] = a;
		if (r < 0)
			return error_set_errno(err, -r, "trace");
		arbitration_spans(a, 0, now_ns, spans, &trace->spans_sent[i]);
	}
	return 0;
}

int tenant_trace_begin(struct tenant *tenant, int pid, uid_t uid, struct tenant_trace **ret,
		       struct error *err)
{
	if (tenant->trace)
		return error_set(
			err, EBUSY,
			"tenant '%s' is traced already, by process %d of uid %u: one trace at a "
			"time",
			tenant->terms.name, tenant->trace->by_pid, (unsigned)tenant->trace->by_uid);
	struct tenant_trace *trace = calloc(1, sizeof(*trace));
	if (!trace)
		return error_set_errno(err, ENOMEM, "trace");
	trace->tenant = tenant;
	trace->by_pid = pid;
	trace->by_uid = uid;
	strcpy(trace->name, tenant->terms.name);
	int r = watch(trace, err);
	if (r < 0) {
		tenant_trace_end(trace);
		return r;
	}
	if (!tenant->trace_order)
		tenant->trace_order = (uint32_t)tenant->node->epoch * MIX;
	tenant->trace_order = (tenant->trace_order & ~TRACE_CLOCK_MASK) + TRACE_ORDER_STEP;
	tenant->trace_order |= (uint32_t)trace_clock_here();
	trace->order = tenant->trace_order;
	tenant->trace = trace;
	atomic_store(&tenant->region.control->trace, trace->order);
	log_info_of(uid, "tenant '%s' (%s): traced by process %d of uid %u", trace->name,
		    tenant->terms.id, pid, (unsigned)uid);
	*ret = trace;
	return 0;
}

static void leave(struct tenant_trace *trace)
{
	while (trace->watched_count)
		arbitration_watch_spans(trace->watched[--trace->watched_count], false);
	trace->tenant = NULL;
}

struct tenant_trace *tenant_trace_end(struct tenant_trace *trace)
{
	if (!trace)
		return NULL;
	if (trace->tenant && trace->tenant->trace == trace) {
		atomic_store(&trace->tenant->region.control->trace, TRACE_NO_CLOCK);
		trace->tenant->trace = NULL;
	}
	leave(trace);
	for (unsigned i = 0; i < trace->waiting_count; i++)
		close(trace->waiting[i].fd);
	free(trace->pids);
	free(trace);
	return NULL;
}

void tenant_trace_forget(struct tenant *tenant)
{
	if (tenant->trace)
		leave(tenant->trace);
	tenant->trace = NULL;
}

static int make_ring(enum trace_clock clock, struct error *err)
{
	cleanup_fd int fd = memfd_create("allot-trace", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (fd < 0 || ftruncate(fd, sizeof(struct trace_ring)) < 0)
		return error_set_errno(err, errno, "trace: can't make shared memory of %zu bytes",
				       sizeof(struct trace_ring));
	struct trace_ring *ring = mmap(NULL, sizeof(*ring), PROT_READ | PROT_WRITE, MAP_SHARED, fd,
				       0);
	if (ring == MAP_FAILED)
		return error_set_errno(err, errno,
				       "trace: can't map the shared memory of the trace");
	ring->magic = TRACE_MAGIC;
	ring->version = TRACE_VERSION;
	ring->size_bytes = sizeof(*ring);
	ring->clock = (uint32_t)clock;
	munmap(ring, sizeof(*ring));
	if (fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) < 0)
		return error_set_errno(
			err, errno,
			"trace: this process is not traced: can't seal the trace's shared memory (F_ADD_SEALS)");
	return steal_fd(&fd);
}

bool tenant_trace_has(const struct tenant_trace *trace, int pid)
{
	for (size_t i = trace->pid_count; i-- > 0;)
		if (trace->pids[i] == pid)
			return true;
	return false;
}

static int note_pid(struct tenant_trace *trace, int pid)
{
	if (tenant_trace_has(trace, pid))
		return 0;
	if (trace->pid_count == trace->pid_size) {
		size_t size = trace->pid_size + PIDS_STEP;
		int *pids = realloc(trace->pids, size * sizeof(*pids));
		if (!pids)
			return -ENOMEM;
		trace->pids = pids;
		trace->pid_size = size;
	}
	trace->pids[trace->pid_count++] = pid;
	return 0;
}

int tenant_trace_join(struct tenant *tenant, const struct process *process, uint32_t order,
		      struct error *err)
{
	struct tenant_trace *trace = tenant->trace;
	if (!trace || trace->order != order)
		return error_set(err, ENOENT, "trace: the trace has ended");
	if (trace->waiting_count == TENANT_TRACE_WAITING_MAX)
		return error_set(err, EAGAIN,
				 "trace: %d processes already wait to be traced, the most "
				 "allowed: try again",
				 TENANT_TRACE_WAITING_MAX);
	if (trace->ring_count == TENANT_TRACE_RINGS_MAX)
		return error_set(err, ENOSPC,
				 "trace: this process is not recorded: %d processes are recorded "
				 "already, the most allowed",
				 TENANT_TRACE_RINGS_MAX);
	if (note_pid(trace, process->pid) < 0)
		return error_set_errno(err, ENOMEM, "trace");
	int fd = make_ring(tenant_trace_clock(trace), err);
	if (fd < 0)
		return fd;
	struct trace_ring_given *given = &trace->waiting[trace->waiting_count++];
	*given = (struct trace_ring_given){ .number = ++trace->ring_count,
					    .pid = process->pid,
					    .fd = fd };
	if (procfs_read(process->pid, "comm", given->name, sizeof(given->name)) > 0)
		given->name[strcspn(given->name, "\n")] = '\0';
	return fd;
}

bool tenant_trace_next_ring(struct tenant_trace *trace, struct trace_ring_given *ret)
{
	if (!trace->waiting_count)
		return false;
	*ret = trace->waiting[0];
	memmove(trace->waiting, trace->waiting + 1,
		--trace->waiting_count * sizeof(trace->waiting[0]));
	return true;
}
