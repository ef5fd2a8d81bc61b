#include <stdio.h>
#include <string.h>

#include "fuzz.h"

static uint64_t state;
static CUstream stream;
static CUmemoryPool own_pool, default_pool;

uint64_t fuzz_pick(uint64_t most)
{
	/* splitmix64 */
	uint64_t x = state += 0x9e3779b97f4a7c15ULL;

	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ULL;
	x = (x ^ x >> 27) * 0x94d049bb133111ebULL;
	return (x ^ x >> 31) % most;
}

/* Of any order of size. */
static size_t pick_bytes(void)
{
	static const size_t scales[] = { 64 * KIB, 2 * MIB, 16 * MIB, 64 * MIB, 256 * MIB };

	return 1 + fuzz_pick(scales[fuzz_pick(sizeof(scales) / sizeof(scales[0]))]);
}

/* ---- allocations ---- */

static CUresult make_small(struct held *h)
{
	h->bytes = 1 + fuzz_pick(MIB);
	return gpu.mem_alloc(&h->p, h->bytes);
}

static CUresult make_linear(struct held *h)
{
	h->bytes = pick_bytes();
	return gpu.mem_alloc(&h->p, h->bytes);
}

static CUresult make_exported(struct held *h)
{
	CUipcMemHandle handle;
	CUresult result;

	h->bytes = pick_bytes();
	result = gpu.mem_alloc(&h->p, h->bytes);
	if (result == CUDA_SUCCESS)
		GPU_DO(ipc_get_memory, &handle, h->p);
	return result;
}

static CUresult make_pitch(struct held *h)
{
	size_t width = 1 + fuzz_pick(16 * KIB), height = 1 + fuzz_pick(8 * KIB), pitch;

	h->bytes = width * height;
	return gpu.mem_alloc_pitch(&h->p, &pitch, width, height, 4);
}

size_t fuzz_managed_bytes;

/* Filled on the card, since it comes there only by use. */
static CUresult make_managed(struct held *h)
{
	CUresult result;

	h->bytes = (1 + fuzz_pick(4)) * 2 * MIB;
	result = gpu.mem_alloc_managed(&h->p, h->bytes, CU_MEM_ATTACH_GLOBAL);
	if (result == CUDA_SUCCESS) {
		GPU_DO(mem_set, h->p, 1, h->bytes);
		GPU_DO(ctx_sync);
		fuzz_managed_bytes += h->bytes;
	}
	return result;
}

static bool free_linear(struct held *h)
{
	GPU_DO(mem_free, h->p);
	return true;
}

static bool free_managed(struct held *h)
{
	fuzz_managed_bytes -= h->bytes;
	return free_linear(h);
}

static CUresult make_array(struct held *h)
{
	CUDA_ARRAY_DESCRIPTOR desc = { 1 + fuzz_pick(4096), 1 + fuzz_pick(2048), CU_AD_FORMAT_FLOAT,
				       4 };

	h->bytes = desc.Width * desc.Height * 16;
	return gpu.array_create(&h->array, &desc);
}

static CUresult make_array3d(struct held *h)
{
	CUDA_ARRAY3D_DESCRIPTOR desc = {
		.Width = 1 + fuzz_pick(256),
		.Height = 1 + fuzz_pick(256),
		.Depth = 1 + fuzz_pick(64),
		.Format = CU_AD_FORMAT_HALF,
		.NumChannels = 2,
	};

	h->bytes = desc.Width * desc.Height * desc.Depth * 4;
	return gpu.array3d_create(&h->array, &desc);
}

static bool free_array(struct held *h)
{
	GPU_DO(array_destroy, h->array);
	return true;
}

static CUresult make_mipmap(struct held *h)
{
	CUDA_ARRAY3D_DESCRIPTOR desc = {
		.Width = 64 + fuzz_pick(2048),
		.Height = 64 + fuzz_pick(2048),
		.Format = CU_AD_FORMAT_UNSIGNED_INT8,
		.NumChannels = 4,
	};

	h->bytes = desc.Width * desc.Height * 4;
	return gpu.mipmap_create(&h->mipmap, &desc, 1 + (unsigned int)fuzz_pick(6));
}

static bool free_mipmap(struct held *h)
{
	GPU_DO(mipmap_destroy, h->mipmap);
	return true;
}

static CUresult make_host(struct held *h)
{
	return gpu.host_alloc(&h->host, 1 + fuzz_pick(16 * MIB), CU_MEMHOSTALLOC_PORTABLE);
}

static bool free_host(struct held *h)
{
	GPU_DO(host_free, h->host);
	return true;
}

/* ---- pools ---- */

static CUresult make_async(struct held *h)
{
	h->bytes = pick_bytes();
	return gpu.mem_alloc_async(&h->p, h->bytes, stream);
}

static CUresult make_from_pool(struct held *h)
{
	h->bytes = pick_bytes();
	return gpu.mem_alloc_from_pool(&h->p, h->bytes, own_pool, stream);
}

static bool free_async(struct held *h)
{
	GPU_DO(mem_free_async, h->p, stream);
	if (fuzz_pick(2))
		GPU_DO(stream_sync, stream);
	return true;
}

/* ---- virtual memory: a handle and mappings, which go in any order ---- */

static CUresult make_physical(struct held *h)
{
	CUmemAllocationProp prop = {
		.type = CU_MEM_ALLOCATION_TYPE_PINNED,
		.location = { CU_MEM_LOCATION_TYPE_DEVICE, gpu.dev },
	};

	h->bytes = h->span = (1 + fuzz_pick(64)) * 2 * MIB;
	return gpu.vmm_create(&h->handle, h->span, &prop, 0);
}

static void map_one(struct held *h, CUdeviceptr *at)
{
	CUmemAccessDesc access = {
		.location = { CU_MEM_LOCATION_TYPE_DEVICE, gpu.dev },
		.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE,
	};

	GPU_DO(vmm_reserve, at, h->span, 0, 0, 0);
	GPU_DO(vmm_map, *at, h->span, 0, h->handle, 0);
	GPU_DO(vmm_access, *at, h->span, &access, 1);
}

static void unmap_one(struct held *h, CUdeviceptr *at)
{
	GPU_DO(vmm_unmap, *at, h->span);
	GPU_DO(vmm_reserve_free, *at, h->span);
	*at = 0;
}

static bool step_physical(struct held *h)
{
	CUdeviceptr *at = &h->mapping[fuzz_pick(FUZZ_MAPPINGS)];

	if (h->handle && fuzz_pick(3) == 0) {
		GPU_DO(vmm_release, h->handle);
		h->handle = 0;
	} else if (*at && !h->handle && fuzz_pick(4) == 0) {
		GPU_DO(vmm_retain, &h->handle, (void *)(uintptr_t)*at);
	} else if (*at) {
		unmap_one(h, at);
	} else if (h->handle) {
		map_one(h, at);
	}
	return !h->handle && !h->mapping[0] && !h->mapping[1];
}

/* ---- graphs: memory from a launch on, kept till it is trimmed ---- */

static CUresult make_graph(struct held *h)
{
	CUDA_MEM_ALLOC_NODE_PARAMS params = {
		.poolProps = {
			.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
			.location = { CU_MEM_LOCATION_TYPE_DEVICE, gpu.dev },
		},
		.bytesize = pick_bytes(),
	};
	CUgraphNode made, freed;
	CUresult result;
	CUgraph graph;

	GPU_DO(graph_create, &graph, 0);
	GPU_DO(graph_add_alloc, &made, graph, NULL, 0, &params);
	GPU_DO(graph_add_free, &freed, graph, &made, 1, params.dptr);
	result = gpu.graph_instantiate(&h->exec, graph, 0);
	GPU_DO(graph_destroy, graph);
	if (result != CUDA_SUCCESS)
		return result;
	result = gpu.graph_launch(h->exec, stream);
	if (result != CUDA_SUCCESS)
		GPU_DO(graph_exec_destroy, h->exec);
	return result;
}

/* Another launch may be refused: the memory may have been trimmed since. */
static bool step_graph(struct held *h)
{
	CUresult result;

	if (fuzz_pick(2)) {
		result = gpu.graph_launch(h->exec, stream);
		if (result != CUDA_ERROR_OUT_OF_MEMORY)
			gpu_check(result, "graph_launch");
		return false;
	}
	GPU_DO(stream_sync, stream);
	GPU_DO(graph_exec_destroy, h->exec);
	return true;
}

/* ---- modules and contexts ---- */

/* Variables of a module are measured and not refused: so small that the quota's tolerance covers them. */
static CUresult make_module(struct held *h)
{
	static const size_t sizes[] = { 16, 64 * KIB, MIB };
	char text[256];

	snprintf(text, sizeof(text),
		 ".version 7.8\n.target sm_90\n.address_size 64\n"
		 ".visible .global .align 16 .b8 data[%zu];\n"
		 ".visible .entry nothing()\n{\n  ret;\n}\n",
		 sizes[fuzz_pick(sizeof(sizes) / sizeof(sizes[0]))]);
	return gpu.module_load(&h->module, text);
}

static bool free_module(struct held *h)
{
	GPU_DO(module_unload, h->module);
	return true;
}

/* With memory in it that nobody frees. */
static CUresult make_context(struct held *h)
{
	CUresult result = gpu.ctx_create(&h->context, 0, gpu.dev);
	CUcontext popped;
	CUdeviceptr p;

	if (result != CUDA_SUCCESS)
		return result;
	h->bytes = pick_bytes();
	result = gpu.mem_alloc(&p, h->bytes);
	if (result != CUDA_SUCCESS)
		h->bytes = 0;
	GPU_DO(ctx_pop, &popped);
	return CUDA_SUCCESS;
}

static bool free_context(struct held *h)
{
	GPU_DO(ctx_destroy, h->context);
	return true;
}

const struct way fuzz_ways[] = {
	{ "small", 6, 0, make_small, free_linear },
	{ "linear", 4, 0, make_linear, free_linear },
	{ "exported", 2, 0, make_exported, free_linear },
	{ "pitch", 3, 0, make_pitch, free_linear },
	{ "managed", 2, 0, make_managed, free_managed },
	{ "array", 3, 0, make_array, free_array },
	{ "array3d", 3, 0, make_array3d, free_array },
	{ "mipmap", 3, 0, make_mipmap, free_mipmap },
	{ "host", 2, 8, make_host, free_host },
	{ "async", 4, 0, make_async, free_async },
	{ "from_pool", 4, 0, make_from_pool, free_async },
	{ "physical", 5, 0, make_physical, step_physical },
	{ "graph", 3, 8, make_graph, step_graph },
	{ "module", 2, 8, make_module, free_module },
	{ "context", 1, 1, make_context, free_context },
};
const unsigned int fuzz_ways_count = sizeof(fuzz_ways) / sizeof(fuzz_ways[0]);

void fuzz_begin(uint64_t seed)
{
	CUmemPoolProps props = {
		.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
		.location = { CU_MEM_LOCATION_TYPE_DEVICE, gpu.dev },
	};
	cuuint64_t keeps = UINT64_MAX;

	state = seed;
	GPU_DO(stream_create, &stream, CU_STREAM_NON_BLOCKING);
	GPU_DO(default_pool, &default_pool, gpu.dev);
	GPU_DO(pool_create, &own_pool, &props);
	GPU_DO(pool_set, own_pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &keeps);
}

void fuzz_trim(void)
{
	GPU_DO(stream_sync, stream);
	GPU_DO(pool_trim, own_pool, 0);
	GPU_DO(pool_trim, default_pool, 0);
	GPU_DO(graph_trim, gpu.dev);
}

void fuzz_end(void)
{
	GPU_DO(pool_destroy, own_pool);
	GPU_DO(stream_destroy, stream);
}
