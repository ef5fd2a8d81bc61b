/*
 * Graphs that allocate memory. The driver maps this memory when a graph is launched, keeps it between launches, and shares it
 * among graphs that do not run at the same time. So the library charges the bytes that the driver reserves for graphs. Before a
 * launch it reserves quota for the memory that the launch may map. Only one such graph is launched at a time (locks.graph),
 * because a launch compares the reserved bytes before and after.
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

/* Bit i: the program has made a graph that allocates memory on device index i. With no bit, a launch only loads this word. */
static _Atomic uint32_t graph_devices;
static struct {
	CUdevice device;
	uint64_t bytes;
} reserved[REGION_MAX_DEVICES]; /* bytes charged for graphs; guarded by locks.graph */

/* The most memory that a launch of a graph may map, by device index. */
struct need {
	uint32_t devices; /* bit i is set if the entries [i] are valid */
	uint64_t bytes[REGION_MAX_DEVICES];
	CUdevice device[REGION_MAX_DEVICES];
};

#define FOR_EACH_DEVICE(i, devices) \
	for (uint32_t i##_left = (devices), i = 0; \
	     i##_left && (i = (uint32_t)__builtin_ctz(i##_left), true); i##_left &= i##_left - 1)

/*
 * Charges the bytes that the driver now reserves for graphs on the device. Gives back reserved_for_it: the bytes of the
 * tenant's quota that were set aside before a graph's launch; 0 if there was no launch. The caller holds locks.graph.
 */
static void update_charge(int index, uint64_t reserved_for_it)
{
	cuuint64_t bytes = 0;

	if (!(atomic_load(&graph_devices) >> index & 1) || !real.cuDeviceGetGraphMemAttribute ||
	    real.cuDeviceGetGraphMemAttribute(reserved[index].device,
					      CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT,
					      &bytes) != CUDA_SUCCESS)
		bytes = 0;
	reserved_update_charge(index, &reserved[index].bytes, bytes, reserved_for_it);
}

void hook_graph_refresh(uint64_t now_ns)
{
	static uint64_t last_ns;

	if (!atomic_load_explicit(&graph_devices, memory_order_relaxed) ||
	    now_ns - last_ns < RESERVED_REFRESH_NS || !sys_trylock(&locks.graph))
		return;
	last_ns = now_ns;
	FOR_EACH_DEVICE(i, atomic_load(&graph_devices))
		update_charge((int)i, 0);
	sys_unlock(&locks.graph);
}

void hook_graph_reset(void)
{
	atomic_store(&graph_devices, 0);
	memset(reserved, 0, sizeof(reserved));
}

static void add_node(CUgraphNode node, struct need *need)
{
	CUDA_MEM_ALLOC_NODE_PARAMS params;
	CUgraphNodeType type;

	if (real.cuGraphNodeGetType(node, &type) != CUDA_SUCCESS ||
	    type != CU_GRAPH_NODE_TYPE_MEM_ALLOC ||
	    real.cuGraphMemAllocNodeGetParams(node, &params) != CUDA_SUCCESS)
		return;
	int index = process_device_index((CUdevice)params.poolProps.location.id);
	if (index < 0)
		return;
	if (!(need->devices >> index & 1))
		need->bytes[index] = 0;
	need->devices |= UINT32_C(1) << index;
	need->bytes[index] += (params.bytesize + RESERVED_STEP - 1) / RESERVED_STEP * RESERVED_STEP;
	need->device[index] = (CUdevice)params.poolProps.location.id;
}

static void read_need(CUgraph graph, struct need *ret)
{
	size_t count = 0;

	ret->devices = 0;
	if (!process_is_active() || !real.cuGraphGetNodes || !real.cuGraphNodeGetType ||
	    !real.cuGraphMemAllocNodeGetParams ||
	    real.cuGraphGetNodes(graph, NULL, &count) != CUDA_SUCCESS || !count)
		return;
	size_t size = count * sizeof(CUgraphNode);
	CUgraphNode *nodes = sys_map(NULL, 0, size);
	if (!nodes)
		return;
	if (real.cuGraphGetNodes(graph, nodes, &count) == CUDA_SUCCESS)
		for (size_t i = 0; i < count; i++)
			add_node(nodes[i], ret);
	munmap(nodes, size);
}

/* False if the graph needs more than the whole quota. Such a graph is refused at its instantiation, not at its first launch. */
static bool fits(const struct need *need)
{
	FOR_EACH_DEVICE(i, need->devices)
		if (need->bytes[i] > ledger_quota((int)i))
			return false;
	return true;
}

/* The key under which ptrmap.h records the bytes that the graph needs on a device. */
static uint64_t key_of(CUgraphExec exec, uint32_t index)
{
	return (uint64_t)(uintptr_t)exec * REGION_MAX_DEVICES + index;
}

static void forget(CUgraphExec exec)
{
	struct holding h;

	FOR_EACH_DEVICE(i, atomic_load_explicit(&graph_devices, memory_order_relaxed))
		ptrmap_remove(HOLDING_GRAPH, key_of(exec, i), &h);
}

static bool remember(CUgraphExec exec, const struct need *need)
{
	FOR_EACH_DEVICE(i, need->devices)
		if (!ptrmap_insert(&(struct holding){ .kind = HOLDING_GRAPH,
						      .key = key_of(exec, i),
						      .device = (int)i,
						      .bytes = need->bytes[i] }))
			return false;
	return true;
}

/* Destroys a graph that exceeds the quota. Call after the driver accepted `graph`, which may be invalid before. */
static CUresult note(CUresult result, CUgraph graph, CUgraphExec *exec)
{
	struct need need;

	if (result != CUDA_SUCCESS)
		return result;
	read_need(graph, &need);
	if (!need.devices)
		return result;
	{
		WITH_LOCK(&locks.graph);
		FOR_EACH_DEVICE(i, need.devices) {
			ledger_mark_unsure((int)i);
			reserved[i].device = need.device[i];
		}
		atomic_fetch_or(&graph_devices, need.devices);
	}
	if (fits(&need) && remember(*exec, &need))
		return result;
	forget(*exec);
	real.cuGraphExecDestroy(*exec);
	*exec = NULL;
	return CUDA_ERROR_OUT_OF_MEMORY;
}

DEFINE_HOOK(hook_graph_instantiate, make,
	    (CUgraphExec * exec, CUgraph graph, CUgraphNode *error_node, char *log, size_t log_size))
{
	WITH_MEMORY_HELD();
	return note(make(exec, graph, error_node, log, log_size), graph, exec);
}

DEFINE_HOOK(hook_graph_instantiate_flags, make,
	    (CUgraphExec * exec, CUgraph graph, unsigned long long flags))
{
	WITH_MEMORY_HELD();
	return note(make(exec, graph, flags), graph, exec);
}

/* For an invalid stream, the driver refuses the upload without reading the graph, which may be invalid too. */
static bool is_stream(CUstream stream)
{
	CUcontext context;

	return !stream || !real.cuStreamGetCtx ||
	       real.cuStreamGetCtx(stream, &context) == CUDA_SUCCESS;
}

DEFINE_HOOK(hook_graph_instantiate_params, make,
	    (CUgraphExec * exec, CUgraph graph, CUDA_GRAPH_INSTANTIATE_PARAMS *params))
{
	WITH_MEMORY_HELD();
	/* With this flag the instantiation itself maps the memory. */
	if (exec && graph && params && charge_index() >= 0 &&
	    params->flags & CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD && is_stream(params->hUploadStream)) {
		struct need need;
		read_need(graph, &need);
		if (!fits(&need))
			return CUDA_ERROR_OUT_OF_MEMORY;
	}
	return note(make(exec, graph, params), graph, exec);
}

/* Keeps the estimate of the graph's run time (estimate.h). If another graph gets this address, a few launches correct it. */
DEFINE_HOOK(hook_graph_exec_destroy, destroy, (CUgraphExec exec))
{
	/* Another graph may get this address during the call. hook_graph_refresh() later updates the charge. */
	if (process_is_active())
		forget(exec);
	return destroy(exec);
}

/* The caller holds locks.graph. */
static bool reserve(int index, uint64_t bytes)
{
	struct reserve_wait wait = { 0 };

	if (ledger_reserve(index, bytes, false) == 0)
		return true;
	hook_pool_trim(index);
	if (real.cuDeviceGraphMemTrim)
		real.cuDeviceGraphMemTrim(reserved[index].device);
	update_charge(index, 0);
	/* locks.graph is held, so the wait must be short. It is: a tenant that holds a context is answered at once. */
	while (reserve_wait(index, bytes, &wait))
		if (ledger_reserve(index, bytes, false) == 0)
			return true;
	return ledger_reserve(index, bytes, true) == 0;
}

static void find_need(CUgraphExec exec, struct need *ret)
{
	struct holding h;

	ret->devices = 0;
	FOR_EACH_DEVICE(i, atomic_load_explicit(&graph_devices, memory_order_relaxed))
		if (ptrmap_find(HOLDING_GRAPH, key_of(exec, i), &h)) {
			ret->devices |= UINT32_C(1) << i;
			ret->bytes[i] = h.bytes;
		}
}

/* Charges what the driver now reserves, and unlocks locks.graph. Does nothing if begin_launch() reserved no quota. */
static void end_launch(const struct need *need)
{
	if (!need->devices)
		return;
	FOR_EACH_DEVICE(i, need->devices)
		update_charge((int)i, need->bytes[i]);
	sys_unlock(&locks.graph);
}

/* True if the graph may be launched. If quota was reserved (*ret_need), locks.graph is held until end_launch(). */
static bool begin_launch(CUgraphExec exec, const struct work *work, struct need *ret_need)
{
	ret_need->devices = 0;
	if (likely(!atomic_load_explicit(&graph_devices, memory_order_relaxed)) ||
	    !process_is_active() ||
	    (atomic_load(&process_state.captures) && inflight_is_capturing(work)))
		return true;
	struct need need;
	find_need(exec, &need);
	if (!need.devices)
		return true;
	sys_lock(&locks.graph);
	FOR_EACH_DEVICE(i, need.devices) {
		if (!reserve((int)i, need.bytes[i])) {
			if (ret_need->devices)
				end_launch(ret_need);
			else
				sys_unlock(&locks.graph);
			return false;
		}
		ret_need->devices |= UINT32_C(1) << i;
		ret_need->bytes[i] = need.bytes[i];
	}
	return true;
}

static CUresult launch_gated(CUresult (*launch)(CUgraphExec, CUstream), CUgraphExec exec,
			     CUstream stream, enum stream_meaning streams)
{
	struct work work = WORK_GRAPH(stream, exec);
	CUresult result = CUDA_ERROR_OUT_OF_MEMORY;
	struct gate_pass pass;
	struct need need;

	work.streams = streams;
	gate_enter(&pass, &work);
	if (!pass.is_refused && begin_launch(exec, &work, &need)) {
		result = launch(exec, stream);
		end_launch(&need);
	}
	gate_leave(&pass, &work, result);
	return result;
}

DEFINE_HOOK(hook_graph_launch, launch, (CUgraphExec exec, CUstream stream))
{
	return launch_gated(launch, exec, stream, LEGACY);
}

DEFINE_HOOK(hook_graph_launch_ptsz, launch, (CUgraphExec exec, CUstream stream))
{
	return launch_gated(launch, exec, stream, PER_THREAD);
}

DEFINE_HOOK(hook_graph_mem_trim, trim, (CUdevice device))
{
	int index = process_is_active() ? process_device_index(device) : -1;

	if (index < 0)
		return trim(device);
	WITH_LOCK(&locks.graph);
	CUresult result = trim(device);
	update_charge(index, 0);
	return result;
}
