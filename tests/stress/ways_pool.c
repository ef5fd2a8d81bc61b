/* Memory that is taken from the card in large steps and kept: pools, and graphs with memory nodes. */
#include "ways.h"

/* Freed by either call, as a pool's memory may be; now and then the stream is waited for. */
static void free_of_pool(struct ways_thread *t, CUdeviceptr ptr)
{
	if (pick(t, 4))
		GPU_DO(cuMemFreeAsync(ptr, t->stream));
	else
		GPU_DO(cuMemFree_v2(ptr));
	if (pick(t, 25) == 0)
		GPU_DO(cuStreamSynchronize(t->stream));
}

CUresult get_async(struct ways_thread *t, struct held *h)
{
	h->bytes = pick_bytes(t);
	return cuMemAllocAsync(&h->ptr, h->bytes, t->stream);
}

bool put_async(struct ways_thread *t, struct held *h)
{
	CUmemoryPool shared;

	free_of_pool(t, h->ptr);
	if (pick(t, 100) == 0) {
		GPU_DO(cuDeviceGetDefaultMemPool(&shared, 0));
		GPU_DO(cuMemPoolTrimTo(shared, pick(t, 256) * MIB));
	}
	return true;
}

CUresult get_from_pool(struct ways_thread *t, struct held *h)
{
	h->bytes = pick_bytes(t);
	return cuMemAllocFromPoolAsync(&h->ptr, h->bytes, t->process->pool, t->stream);
}

bool put_from_pool(struct ways_thread *t, struct held *h)
{
	free_of_pool(t, h->ptr);
	if (pick(t, 100) == 0)
		GPU_DO(cuMemPoolTrimTo(t->process->pool, pick(t, 256) * MIB));
	return true;
}

static void make_pool(struct ways_thread *t, struct held *h)
{
	CUmemPoolProps props = {
		.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
		.location = { CU_MEM_LOCATION_TYPE_DEVICE, 0 },
	};
	cuuint64_t keep = UINT64_MAX;

	GPU_DO(cuMemPoolCreate(&h->pool, &props));
	/* Half of them give nothing back at a wait. */
	if (pick(t, 2))
		GPU_DO(cuMemPoolSetAttribute(h->pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &keep));
}

/* A pool of its own, with some memory from it. */
CUresult get_pool(struct ways_thread *t, struct held *h)
{
	CUresult result = CUDA_SUCCESS;

	make_pool(t, h);
	for (unsigned i = 0; i < WAYS_PIECES && result == CUDA_SUCCESS; i++) {
		uint64_t bytes = pick_bytes(t);
		result = cuMemAllocFromPoolAsync(&h->piece[i], bytes, h->pool, t->stream);
		if (result == CUDA_SUCCESS)
			h->bytes += bytes;
	}
	if (result != CUDA_ERROR_OUT_OF_MEMORY)
		return result;
	if (h->bytes)
		return CUDA_SUCCESS;
	GPU_DO(cuMemPoolDestroy(h->pool));
	return result;
}

bool put_pool(struct ways_thread *t, struct held *h)
{
	unsigned first = (unsigned)pick(t, WAYS_PIECES);

	for (unsigned i = 0; i < WAYS_PIECES; i++) {
		CUdeviceptr ptr = h->piece[(first + i) % WAYS_PIECES];
		if (ptr)
			free_of_pool(t, ptr);
		if (pick(t, 3) == 0)
			GPU_DO(cuMemPoolTrimTo(h->pool, pick(t, 64) * MIB));
	}
	GPU_DO(cuMemPoolDestroy(h->pool));
	return true;
}

/* ---- graphs ---- */

/* Large: a process has but one graph's worth of it at a time. */
static uint64_t pick_graph_bytes(struct ways_thread *t)
{
	return 1 + pick(t, 2) * pick(t, 400 * MIB) + pick_bytes(t);
}

static CUgraphNode add_alloc(CUgraph graph, const CUgraphNode *after, uint64_t bytes,
			     CUdeviceptr *ret_ptr)
{
	CUDA_MEM_ALLOC_NODE_PARAMS params = {
		.poolProps = { .allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
			       .location = { CU_MEM_LOCATION_TYPE_DEVICE, 0 } },
		.bytesize = bytes,
	};
	CUgraphNode node;

	GPU_DO(cuGraphAddMemAllocNode(&node, graph, after, after ? 1 : 0, &params));
	*ret_ptr = params.dptr;
	return node;
}

static CUgraph build(struct ways_thread *t)
{
	CUgraph graph;
	CUgraphNode last = NULL, freed;
	CUdeviceptr ptr;

	GPU_DO(cuGraphCreate(&graph, 0));
	for (uint64_t n = 1 + pick(t, 2); n; n--) {
		last = add_alloc(graph, last ? &last : NULL, pick_graph_bytes(t), &ptr);
		GPU_DO(cuGraphAddMemFreeNode(&freed, graph, &last, 1, ptr));
		last = freed;
	}
	return graph;
}

static CUgraph capture(struct ways_thread *t)
{
	CUgraph graph;
	CUdeviceptr ptr;

	GPU_DO(cuStreamBeginCapture_v2(t->stream, CU_STREAM_CAPTURE_MODE_RELAXED));
	GPU_DO(cuMemAllocAsync(&ptr, pick_graph_bytes(t), t->stream));
	GPU_DO(cuMemFreeAsync(ptr, t->stream));
	GPU_DO(cuStreamEndCapture(t->stream, &graph));
	return graph;
}

/*
 * Counted as nothing: what a launch maps is shared by all graphs of the process, and kept till it is
 * trimmed. The card shows it.
 */
CUresult get_graph(struct ways_thread *t, struct held *h)
{
	CUgraph graph = pick(t, 2) ? build(t) : capture(t);

	GPU_DO(cuGraphInstantiateWithFlags(&h->exec, graph, 0));
	GPU_DO(cuGraphDestroy(graph));
	CUresult result = cuGraphLaunch(h->exec, t->stream);
	if (result == CUDA_ERROR_OUT_OF_MEMORY)
		GPU_DO(cuGraphExecDestroy(h->exec));
	return result;
}

bool put_graph(struct ways_thread *t, struct held *h)
{
	if (pick(t, 2)) {
		CUresult result = cuGraphLaunch(h->exec, t->stream);
		if (result != CUDA_ERROR_OUT_OF_MEMORY)
			GPU_DO(result);
	}
	GPU_DO(cuGraphExecDestroy(h->exec));
	if (pick(t, 8) == 0)
		GPU_DO(cuDeviceGraphMemTrim(0));
	return true;
}
