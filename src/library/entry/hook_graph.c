/*
 * Graphs that allocate memory. The driver maps the memory when such a graph is launched, keeps the memory between
 * launches, and shares it among graphs that do not run at the same time. So such memory is charged like a pool: by
 * what the device reports as reserved for graphs. A launch first reserves the memory that it may map. Only one graph with
 * memory is launched at a time (locks.graph), since a launch compares the reserved bytes before and after.
 */
#include "library/entry/hook_graph.h"

#include <string.h>
#include <sys/mman.h>

#include "library/entry/hook_pool.h"
#include "library/entry/hooks.h"
#include "library/launch/inflight/inflight.h"
#include "library/launch/gate.h"
#include "library/loader/real.h"
#include "library/memory/reserve_wait.h"
#include "library/memory/holding.h"
#include "library/memory/reserved.h"
#include "library/memory/swap_hold.h"
#include "library/sys/locks.h"

/* number of executable graphs with memory made so far; while 0, launches pay for one load only */
static _Atomic uint32_t graphs;
static struct {
	bool is_known;
	CUdevice device;
	uint64_t bytes; /* bytes charged */
} reserved[REGION_MAX_DEVICES];

/* Updates the charge of the device's graph memory (reserved_settle()). The caller holds locks.graph. */
static void settle(int index, uint64_t reserved_for_it)
{
	cuuint64_t bytes = 0;

	if (!reserved[index].is_known || !real.cuDeviceGetGraphMemAttribute ||
	    real.cuDeviceGetGraphMemAttribute(reserved[index].device,
					      CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT,
					      &bytes) != CUDA_SUCCESS)
		bytes = 0;
	reserved_settle(index, &reserved[index].bytes, bytes, reserved_for_it);
}

void hook_graph_refresh(uint64_t now_ns)
{
	static uint64_t last_ns;

	if (!atomic_load_explicit(&graphs, memory_order_relaxed) ||
	    now_ns - last_ns < RESERVED_REFRESH_NS || !sys_trylock(&locks.graph))
		return;
	last_ns = now_ns;
	for (int i = 0; i < REGION_MAX_DEVICES; i++)
		if (reserved[i].is_known)
			settle(i, 0);
	sys_unlock(&locks.graph);
}

void hook_graph_reset(void)
{
	atomic_store(&graphs, 0);
	memset(reserved, 0, sizeof(reserved));
}

/* Adds to *h the bytes that the node allocates, and sets their device. */
static void add_node(CUgraphNode node, struct holding *h)
{
	CUDA_MEM_ALLOC_NODE_PARAMS params;
	CUgraphNodeType type;

	if (real.cuGraphNodeGetType(node, &type) != CUDA_SUCCESS ||
	    type != CU_GRAPH_NODE_TYPE_MEM_ALLOC ||
	    real.cuGraphMemAllocNodeGetParams(node, &params) != CUDA_SUCCESS)
		return;
	h->bytes += (params.bytesize + RESERVED_STEP - 1) / RESERVED_STEP * RESERVED_STEP;
	h->related = (uint64_t)params.poolProps.location.id;
}

/* Returns what a launch of the graph may map: the bytes, the device index, and in `related` the CUDA device. */
static struct holding need_of(CUgraph graph)
{
	struct holding h = { .kind = HOLDING_GRAPH, .device = -1 };
	size_t count = 0;

	if (!process_is_active() || !real.cuGraphGetNodes || !real.cuGraphNodeGetType ||
	    !real.cuGraphMemAllocNodeGetParams ||
	    real.cuGraphGetNodes(graph, NULL, &count) != CUDA_SUCCESS || !count)
		return h;
	size_t size = count * sizeof(CUgraphNode);
	CUgraphNode *nodes = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
				  -1, 0);
	if (nodes == MAP_FAILED)
		return h;
	if (real.cuGraphGetNodes(graph, nodes, &count) == CUDA_SUCCESS)
		for (size_t i = 0; i < count; i++)
			add_node(nodes[i], &h);
	munmap(nodes, size);
	if (h.bytes)
		h.device = process_device_index((CUdevice)h.related);
	return h;
}

/*
 * True if the memory that a launch may map fits the quota at all. Otherwise the graph is refused when it is instantiated, not
 * at its first launch.
 */
static bool fits(const struct holding *need)
{
	return need->device < 0 || need->bytes <= ledger_quota(need->device);
}

/*
 * Records the memory that the new executable graph needs, or destroys that graph if the memory does not fit the quota. Call
 * after the driver has accepted the graph: before that, `graph` may be an invalid handle.
 */
static CUresult note(CUresult result, CUgraph graph, CUgraphExec *exec)
{
	if (result != CUDA_SUCCESS)
		return result;
	struct holding need = need_of(graph);
	if (need.device < 0)
		return result;
	need.key = (uint64_t)(uintptr_t)*exec;
	if (!fits(&need) || !ptrmap_insert(&need)) {
		real.cuGraphExecDestroy(*exec);
		*exec = NULL;
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	WITH_LOCK(&locks.graph);
	ledger_mark_unsure(need.device);
	reserved[need.device].is_known = true;
	reserved[need.device].device = (CUdevice)need.related;
	atomic_fetch_add(&graphs, 1);
	return result;
}

CUresult hook_graph_instantiate(CUresult (*make)(CUgraphExec *, CUgraph, CUgraphNode *, char *,
						 size_t),
				CUgraphExec *exec, CUgraph graph, CUgraphNode *error_node,
				char *log, size_t log_size)
{
	WITH_MEMORY_HELD();
	return note(make(exec, graph, error_node, log, log_size), graph, exec);
}

CUresult hook_graph_instantiate_flags(CUresult (*make)(CUgraphExec *, CUgraph, unsigned long long),
				      CUgraphExec *exec, CUgraph graph, unsigned long long flags)
{
	WITH_MEMORY_HELD();
	return note(make(exec, graph, flags), graph, exec);
}

/*
 * True if `stream` is valid. The driver checks the stream of an upload before the graph. So check the stream before reading the
 * graph, whose handle may be invalid.
 */
static bool is_stream(CUstream stream)
{
	CUcontext context;

	return !stream || !real.cuStreamGetCtx ||
	       real.cuStreamGetCtx(stream, &context) == CUDA_SUCCESS;
}

CUresult hook_graph_instantiate_params(CUresult (*make)(CUgraphExec *, CUgraph,
							CUDA_GRAPH_INSTANTIATE_PARAMS *),
				       CUgraphExec *exec, CUgraph graph,
				       CUDA_GRAPH_INSTANTIATE_PARAMS *params)
{
	WITH_MEMORY_HELD();
	/* An upload maps the memory at once, so the instantiation could not be refused afterwards. */
	if (exec && graph && params && charge_index() >= 0 &&
	    params->flags & CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD && is_stream(params->hUploadStream)) {
		struct holding need = need_of(graph);
		if (!fits(&need))
			return CUDA_ERROR_OUT_OF_MEMORY;
	}
	return note(make(exec, graph, params), graph, exec);
}

/* Keeps the graph's estimate. A new graph at the same address corrects it within a few launches. */
CUresult hook_graph_exec_destroy(CUresult (*destroy)(CUgraphExec), CUgraphExec exec)
{
	struct holding h;

	/*
	 * Forget the graph before the call, since another graph may get its address at once. The charge for mapped memory is
	 * updated later.
	 */
	if (process_is_active() && atomic_load_explicit(&graphs, memory_order_relaxed))
		ptrmap_remove(HOLDING_GRAPH, (uint64_t)(uintptr_t)exec, &h);
	return destroy(exec);
}

/*
 * Reserves what `need` says. If that fails, first trims unused memory of pools and graphs, and tries again. The caller holds
 * locks.graph.
 */
static bool reserve(const struct holding *need)
{
	struct admission wait = { 0 };

	if (ledger_reserve(need->device, need->bytes, false) == 0)
		return true;
	hook_pool_trim(need->device);
	if (real.cuDeviceGraphMemTrim)
		real.cuDeviceGraphMemTrim((CUdevice)need->related);
	settle(need->device, 0);
	/* A process that launches has a context, so the daemon answers at once. */
	while (admission_wait(need->device, need->bytes, &wait))
		if (ledger_reserve(need->device, need->bytes, false) == 0)
			return true;
	return ledger_reserve(need->device, need->bytes, true) == 0;
}

/*
 * Returns true if the graph may be launched. *ret_need tells what was reserved for the launch; ret_need->device is
 * -1 if nothing was. If something was reserved, locks.graph is held on return.
 */
static bool begin_launch(CUgraphExec exec, const struct work *work, struct holding *ret_need)
{
	ret_need->device = -1;
	if (likely(!atomic_load_explicit(&graphs, memory_order_relaxed)) || !process_is_active() ||
	    !ptrmap_find(HOLDING_GRAPH, (uint64_t)(uintptr_t)exec, ret_need))
		return true;
	if (atomic_load(&process_state.captures) && inflight_is_capturing(work)) {
		ret_need->device = -1;
		return true;
	}
	sys_lock(&locks.graph);
	if (reserve(ret_need))
		return true;
	sys_unlock(&locks.graph);
	return false;
}

static CUresult launch_gated(CUresult (*launch)(CUgraphExec, CUstream), CUgraphExec exec,
			     CUstream stream, enum stream_meaning streams)
{
	struct work work = WORK_GRAPH(stream, exec);
	CUresult result = CUDA_ERROR_OUT_OF_MEMORY;
	struct gate_pass pass;
	struct holding need;

	work.streams = streams;
	gate_enter(&pass, &work);
	if (!pass.is_refused && begin_launch(exec, &work, &need)) {
		result = launch(exec, stream);
		if (need.device >= 0) {
			settle(need.device, need.bytes);
			sys_unlock(&locks.graph);
		}
	}
	gate_leave(&pass, &work, result);
	return result;
}

CUresult hook_graph_launch(CUresult (*launch)(CUgraphExec, CUstream), CUgraphExec exec,
			   CUstream stream)
{
	return launch_gated(launch, exec, stream, LEGACY);
}

CUresult hook_graph_launch_ptsz(CUresult (*launch)(CUgraphExec, CUstream), CUgraphExec exec,
				CUstream stream)
{
	return launch_gated(launch, exec, stream, PER_THREAD);
}

CUresult hook_graph_mem_trim(CUresult (*trim)(CUdevice), CUdevice device)
{
	int index = process_is_active() ? process_device_index(device) : -1;

	if (index < 0)
		return trim(device);
	WITH_LOCK(&locks.graph);
	CUresult result = trim(device);
	settle(index, 0);
	return result;
}
