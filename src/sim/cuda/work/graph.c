/*
 * A graph runs its steps in the order in which they were added, and keeps no edges. That order satisfies every edge from an
 * earlier node to a later one. An edge that cuGraphAddDependencies() adds from a later node to an earlier one is ignored.
 */
#include <stdlib.h>
#include <string.h>

#include "sim/cuda/sim.h"

struct CUgraphNode_st {
	uint32_t magic;
	CUgraphNode next;
	struct sim_step step;
	CUDA_KERNEL_NODE_PARAMS kernel;
};

struct CUgraph_st {
	uint32_t magic;
	pthread_mutex_t lock;
	CUgraphNode first, last;
	size_t count;
};

struct CUgraphExec_st {
	uint32_t magic;
	cuuint64_t flags;
	size_t count;
	struct sim_step *steps;
	uint64_t memory_bytes; /* memory that a launch needs */
};

bool sim_is_graph(CUgraph graph)
{
	return graph && graph->magic == MAGIC_GRAPH;
}

CUgraph sim_graph_new(void)
{
	CUgraph graph = calloc(1, sizeof(*graph));

	if (graph) {
		graph->magic = MAGIC_GRAPH;
		pthread_mutex_init(&graph->lock, NULL);
	}
	return graph;
}

bool sim_graph_add(CUgraph graph, const struct sim_step *step, CUgraphNode *ret_node)
{
	CUgraphNode node = calloc(1, sizeof(*node));

	if (!node)
		return false;
	node->magic = MAGIC_NODE;
	node->step = *step;
	pthread_mutex_lock(&graph->lock);
	if (graph->last)
		graph->last->next = node;
	else
		graph->first = node;
	graph->last = node;
	graph->count++;
	pthread_mutex_unlock(&graph->lock);
	if (ret_node)
		*ret_node = node;
	return true;
}

CUresult cuGraphCreate(CUgraph *graph, unsigned int flags)
{
	SIM_ENTER(cuGraphCreate);
	SIM_FAIL_IF(!graph || flags, CUDA_ERROR_INVALID_VALUE);
	*graph = sim_graph_new();
	return *graph ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult cuGraphDestroy(CUgraph graph)
{
	SIM_ENTER(cuGraphDestroy);
	SIM_FAIL_IF(!sim_is_graph(graph), CUDA_ERROR_INVALID_VALUE);
	while (graph->first) {
		CUgraphNode node = graph->first;

		graph->first = node->next;
		sim_free_handle(node);
	}
	sim_free_handle(graph);
	return CUDA_SUCCESS;
}

CUresult cuGraphClone(CUgraph *clone, CUgraph graph)
{
	SIM_ENTER(cuGraphClone);
	SIM_FAIL_IF(!clone || !sim_is_graph(graph) || !(*clone = sim_graph_new()),
		    CUDA_ERROR_INVALID_VALUE);
	for (CUgraphNode node = graph->first; node; node = node->next) {
		CUgraphNode copy;

		SIM_FAIL_IF(!sim_graph_add(*clone, &node->step, &copy), CUDA_ERROR_OUT_OF_MEMORY);
		copy->kernel = node->kernel;
	}
	return CUDA_SUCCESS;
}

static bool takes_time(const struct sim_step *step)
{
	return step->kind == STEP_KERNEL || step->kind == STEP_COPY || step->kind == STEP_SET;
}

/* True if both steps take the same part of the GPU, so that they can run as one. */
static bool is_alike(const struct sim_step *a, const struct sim_step *b)
{
	return takes_time(a) && a->kind == b->kind && a->way == b->way && a->blocks == b->blocks &&
	       a->threads == b->threads;
}

/* Merges adjacent steps that are alike. NULL if out of memory. */
static struct sim_step *flatten(CUgraph graph, size_t *ret_count)
{
	struct sim_step *steps = calloc(graph->count + 1, sizeof(*steps));
	size_t n = 0;

	for (CUgraphNode node = graph->first; steps && node; node = node->next) {
		if (node->step.kind == STEP_EMPTY || node->step.kind == STEP_ALLOC ||
		    node->step.kind == STEP_FREE)
			continue;
		if (n && is_alike(&steps[n - 1], &node->step))
			steps[n - 1].ns += node->step.ns;
		else
			steps[n++] = node->step;
	}
	*ret_count = n;
	return steps;
}

static uint64_t memory_of(CUgraph graph)
{
	uint64_t bytes = 0;

	for (CUgraphNode node = graph->first; node; node = node->next)
		if (node->step.kind == STEP_ALLOC)
			bytes += (node->step.value + SIM_UNIT - 1) / SIM_UNIT * SIM_UNIT;
	return bytes;
}

static CUresult instantiate(CUgraphExec *ret_exec, CUgraph graph, cuuint64_t flags)
{
	CUgraphExec exec;

	SIM_FAIL_IF(!ret_exec || !sim_is_graph(graph), CUDA_ERROR_INVALID_VALUE);
	exec = calloc(1, sizeof(*exec));
	SIM_FAIL_IF(!exec, CUDA_ERROR_OUT_OF_MEMORY);
	exec->magic = MAGIC_EXEC;
	exec->flags = flags;
	exec->memory_bytes = memory_of(graph);
	exec->steps = flatten(graph, &exec->count);
	if (!exec->steps) {
		free(exec);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	*ret_exec = exec;
	return CUDA_SUCCESS;
}

SIM_FUNCTION(cuGraphInstantiateWithFlags,
	     (CUgraphExec * exec, CUgraph graph, unsigned long long flags),
	     instantiate(exec, graph, flags))

static CUresult with_log(CUgraphExec *exec, CUgraph graph, char *log, size_t log_size)
{
	if (log && log_size)
		log[0] = '\0';
	return instantiate(exec, graph, 0);
}

SIM_FUNCTION(cuGraphInstantiate,
	     (CUgraphExec * exec, CUgraph graph, CUgraphNode *error_node, char *log, size_t log_size),
	     with_log(exec, graph, log, log_size))
SIM_FUNCTION(cuGraphInstantiate_v2,
	     (CUgraphExec * exec, CUgraph graph, CUgraphNode *error_node, char *log, size_t log_size),
	     with_log(exec, graph, log, log_size))

static CUresult with_params(CUgraphExec *exec, CUgraph graph, CUDA_GRAPH_INSTANTIATE_PARAMS *params,
			    bool ptds)
{
	CUstream stream;
	CUresult r = CUDA_SUCCESS;

	SIM_FAIL_IF(!params, CUDA_ERROR_INVALID_VALUE);
	if (params->hUploadStream)
		r = sim_stream(params->hUploadStream, ptds, &stream);
	if (r == CUDA_SUCCESS)
		r = instantiate(exec, graph, params->flags);
	params->hErrNode_out = NULL;
	params->result_out = r != CUDA_SUCCESS;
	return r;
}

SIM_TWINS(cuGraphInstantiateWithParams, _ptsz,
	  (CUgraphExec * exec, CUgraph graph, CUDA_GRAPH_INSTANTIATE_PARAMS *params),
	  return with_params(exec, graph, params, ptds);)

CUresult cuGraphExecDestroy(CUgraphExec exec)
{
	SIM_ENTER(cuGraphExecDestroy);
	SIM_FAIL_IF(!exec || exec->magic != MAGIC_EXEC, CUDA_ERROR_INVALID_VALUE);
	free(exec->steps);
	sim_free_handle(exec);
	return CUDA_SUCCESS;
}

CUresult cuGraphExecGetFlags(CUgraphExec exec, cuuint64_t *flags)
{
	SIM_ENTER(cuGraphExecGetFlags);
	SIM_FAIL_IF(!exec || exec->magic != MAGIC_EXEC || !flags, CUDA_ERROR_INVALID_VALUE);
	*flags = exec->flags;
	return CUDA_SUCCESS;
}

CUresult cuGraphExecUpdate_v2(CUgraphExec exec, CUgraph graph, CUgraphExecUpdateResultInfo *info)
{
	size_t count;

	SIM_ENTER(cuGraphExecUpdate_v2);
	SIM_FAIL_IF(!exec || exec->magic != MAGIC_EXEC || !sim_is_graph(graph),
		    CUDA_ERROR_INVALID_VALUE);
	struct sim_step *steps = flatten(graph, &count);
	SIM_FAIL_IF(!steps, CUDA_ERROR_OUT_OF_MEMORY);
	free(exec->steps);
	exec->steps = steps;
	exec->count = count;
	exec->memory_bytes = memory_of(graph);
	if (info)
		memset(info, 0, sizeof(*info));
	return CUDA_SUCCESS;
}

static CUresult graph_launch(CUgraphExec exec, CUstream handle, bool ptds)
{
	bool counted = false;
	CUstream stream;
	CUresult r = CUDA_SUCCESS;

	SIM_TRY(sim_stream(handle, ptds, &stream));
	SIM_FAIL_IF(!exec || exec->magic != MAGIC_EXEC, CUDA_ERROR_INVALID_VALUE);
	if (atomic_load_explicit(&sim.captures, memory_order_relaxed)) {
		struct sim_step none = { .kind = STEP_EMPTY };

		/* A launch into a capture adds the steps to the capture's graph. */
		if (sim_capture_step(stream, &none, &r)) {
			for (size_t i = 0; i < exec->count && r == CUDA_SUCCESS; i++)
				sim_capture_step(stream, &exec->steps[i], &r);
			return r;
		}
	}
	if (exec->memory_bytes)
		r = sim_graph_map(stream->ctx->dev, exec->memory_bytes);
	for (size_t i = 0; i < exec->count && r == CUDA_SUCCESS; i++) {
		bool is_counted = !counted && exec->steps[i].kind == STEP_KERNEL;

		r = sim_run_step(stream, &exec->steps[i], is_counted);
		counted |= is_counted;
	}
	return r;
}

SIM_TWINS(cuGraphLaunch, _ptsz, (CUgraphExec exec, CUstream stream),
	  return graph_launch(exec, stream, ptds);)
SIM_TWINS(cuGraphUpload, _ptsz, (CUgraphExec exec, CUstream stream),
	  return exec && exec->magic == MAGIC_EXEC ? sim_stream(stream, ptds, &stream)
						   : CUDA_ERROR_INVALID_VALUE;)

static CUresult get_nodes(CUgraph graph, CUgraphNode *nodes, size_t *count, size_t have)
{
	size_t n = 0;

	SIM_FAIL_IF(!sim_is_graph(graph) || !count, CUDA_ERROR_INVALID_VALUE);
	for (CUgraphNode node = graph->first; nodes && node && n < have && n < *count;
	     node = node->next)
		nodes[n++] = node;
	*count = nodes ? n : have;
	return CUDA_SUCCESS;
}

SIM_FUNCTION(cuGraphGetNodes, (CUgraph graph, CUgraphNode *nodes, size_t *count),
	     get_nodes(graph, nodes, count, sim_is_graph(graph) ? graph->count : 0))
SIM_FUNCTION(cuGraphGetRootNodes, (CUgraph graph, CUgraphNode *nodes, size_t *count),
	     get_nodes(graph, nodes, count, sim_is_graph(graph) && graph->count))

CUresult cuGraphNodeGetType(CUgraphNode node, CUgraphNodeType *type)
{
	SIM_ENTER(cuGraphNodeGetType);
	SIM_FAIL_IF(!node || node->magic != MAGIC_NODE || !type, CUDA_ERROR_INVALID_VALUE);
	switch (node->step.kind) {
	case STEP_KERNEL:
	case STEP_SPIN: *type = 0; break;
	case STEP_COPY: *type = 1; break;
	case STEP_SET: *type = 2; break;
	case STEP_HOST_FUNC:
	case STEP_CALLBACK: *type = 3; break;
	case STEP_EMPTY: *type = 5; break;
	case STEP_ALLOC: *type = CU_GRAPH_NODE_TYPE_MEM_ALLOC; break;
	case STEP_FREE: *type = CU_GRAPH_NODE_TYPE_MEM_FREE; break;
	default: *type = 12; break; /* batch memory operation */
	}
	return CUDA_SUCCESS;
}

static CUresult add(CUgraphNode *ret_node, CUgraph graph, const struct sim_step *step)
{
	SIM_FAIL_IF(!ret_node || !sim_is_graph(graph), CUDA_ERROR_INVALID_VALUE);
	return sim_graph_add(graph, step, ret_node) ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult cuGraphAddMemAllocNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *dependencies,
				size_t count, CUDA_MEM_ALLOC_NODE_PARAMS *params)
{
	struct sim_step step = { .kind = STEP_ALLOC };
	CUcontext ctx;

	SIM_ENTER(cuGraphAddMemAllocNode);
	SIM_TRY(sim_need_context(&ctx));
	SIM_FAIL_IF(!params || !params->bytesize || params->bytesize > 1ull << 44,
		    CUDA_ERROR_INVALID_VALUE);
	step.value = params->bytesize;
	step.flags = (unsigned int)ctx->dev;
	step.addr = sim_graph_addresses(ctx, params->bytesize);
	SIM_TRY(step.addr ? add(node, graph, &step) : CUDA_ERROR_OUT_OF_MEMORY);
	params->dptr = step.addr;
	return CUDA_SUCCESS;
}

SIM_FUNCTION(cuGraphAddMemFreeNode,
	     (CUgraphNode * node, CUgraph graph, const CUgraphNode *dependencies, size_t count,
	      CUdeviceptr ptr),
	     add(node, graph, &(struct sim_step){ .kind = STEP_FREE, .addr = ptr }))

CUresult cuGraphMemAllocNodeGetParams(CUgraphNode node, CUDA_MEM_ALLOC_NODE_PARAMS *params)
{
	SIM_ENTER(cuGraphMemAllocNodeGetParams);
	SIM_FAIL_IF(!node || node->magic != MAGIC_NODE || node->step.kind != STEP_ALLOC || !params,
		    CUDA_ERROR_INVALID_VALUE);
	memset(params, 0, sizeof(*params));
	params->poolProps.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
	params->poolProps.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
	params->poolProps.location.id = (int)node->step.flags;
	params->bytesize = node->step.value;
	params->dptr = node->step.addr;
	return CUDA_SUCCESS;
}

SIM_FUNCTION(cuGraphAddEmptyNode,
	     (CUgraphNode * node, CUgraph graph, const CUgraphNode *dependencies, size_t count),
	     add(node, graph, &(struct sim_step){ .kind = STEP_EMPTY }))

CUresult cuGraphAddKernelNode_v2(CUgraphNode *node, CUgraph graph, const CUgraphNode *dependencies,
				 size_t count, const CUDA_KERNEL_NODE_PARAMS *params)
{
	struct sim_step step = { .kind = STEP_KERNEL };
	CUcontext ctx;

	SIM_ENTER(cuGraphAddKernelNode_v2);
	SIM_TRY(sim_need_context(&ctx));
	CUfunction f = params ? params->func ? params->func : (CUfunction)params->kern : NULL;
	SIM_FAIL_IF(!f || f->magic != MAGIC_FUNCTION, CUDA_ERROR_INVALID_VALUE);
	step.blocks = (uint64_t)params->gridDimX * params->gridDimY * params->gridDimZ;
	step.threads = (uint64_t)params->blockDimX * params->blockDimY * params->blockDimZ;
	SIM_FAIL_IF(!step.blocks || !step.threads, CUDA_ERROR_INVALID_VALUE);
	step.ns = sim_kernel_ns(f, ctx->dev, step.blocks);
	SIM_TRY(add(node, graph, &step));
	(*node)->kernel = *params;
	return CUDA_SUCCESS;
}

CUresult cuGraphKernelNodeGetParams_v2(CUgraphNode node, CUDA_KERNEL_NODE_PARAMS *params)
{
	SIM_ENTER(cuGraphKernelNodeGetParams_v2);
	SIM_FAIL_IF(!node || node->magic != MAGIC_NODE || node->step.kind != STEP_KERNEL || !params,
		    CUDA_ERROR_INVALID_VALUE);
	*params = node->kernel;
	return CUDA_SUCCESS;
}

static bool is_allocated(CUdeviceptr ptr)
{
	struct sim_region *region;
	uint64_t base, bytes;

	SIM_WITH_LOCK();
	return !sim_va_is_device(ptr) || sim_allocation_at(ptr, &base, &bytes, &region);
}

/* Copy and memset nodes keep only their time, so their parameters cannot be changed. */
SIM_FUNCTION(cuGraphMemcpyNodeSetParams, (CUgraphNode node, const CUDA_MEMCPY3D *copy),
	     CUDA_ERROR_NOT_SUPPORTED)
SIM_FUNCTION(cuGraphMemsetNodeSetParams, (CUgraphNode node, const CUDA_MEMSET_NODE_PARAMS *params),
	     CUDA_ERROR_NOT_SUPPORTED)
SIM_FUNCTION(cuGraphExecMemcpyNodeSetParams,
	     (CUgraphExec exec, CUgraphNode node, const CUDA_MEMCPY3D *copy, CUcontext ctx),
	     CUDA_ERROR_NOT_SUPPORTED)
SIM_FUNCTION(cuGraphExecMemsetNodeSetParams,
	     (CUgraphExec exec, CUgraphNode node, const CUDA_MEMSET_NODE_PARAMS *params,
	      CUcontext ctx),
	     CUDA_ERROR_NOT_SUPPORTED)

CUresult cuGraphAddMemcpyNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *dependencies,
			      size_t count, const CUDA_MEMCPY3D *copy, CUcontext ctx)
{
	SIM_ENTER(cuGraphAddMemcpyNode);
	SIM_FAIL_IF(!copy || !sim_context_is_valid(ctx), CUDA_ERROR_INVALID_VALUE);
	struct sim_step step = sim_copy_3d_step(ctx, copy);
	return add(node, graph, &step);
}

CUresult cuGraphAddMemsetNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *dependencies,
			      size_t count, const CUDA_MEMSET_NODE_PARAMS *params, CUcontext ctx)
{
	struct sim_step step = { .kind = STEP_SET, .way = SIM_WAY_WITHIN };

	SIM_ENTER(cuGraphAddMemsetNode);
	SIM_FAIL_IF(!params || !sim_context_is_valid(ctx) || !is_allocated(params->dst),
		    CUDA_ERROR_INVALID_VALUE);
	step.ns = sim_ns_of(params->width * params->height * params->elementSize,
			    sim_context_device(ctx)->info.set_bytes_per_s);
	return add(node, graph, &step);
}

CUresult cuGraphAddHostNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *dependencies,
			    size_t count, const CUDA_HOST_NODE_PARAMS *params)
{
	SIM_ENTER(cuGraphAddHostNode);
	SIM_FAIL_IF(!params || !params->fn, CUDA_ERROR_INVALID_VALUE);
	return add(node, graph,
		   &(struct sim_step){ .kind = STEP_HOST_FUNC,
				       .fn = (void *)params->fn,
				       .data = params->userData });
}

SIM_FUNCTION(cuGraphAddDependencies,
	     (CUgraph graph, const CUgraphNode *from, const CUgraphNode *to, size_t count),
	     sim_is_graph(graph) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE)
SIM_FUNCTION(cuGraphAddDependencies_v2,
	     (CUgraph graph, const CUgraphNode *from, const CUgraphNode *to,
	      const CUgraphEdgeData *edges, size_t count),
	     sim_is_graph(graph) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE)
