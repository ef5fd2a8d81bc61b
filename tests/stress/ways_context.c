/* Contexts with what is in them, and what no call names: code, local memory. */
#include "ways.h"

#define CONTEXT_BYTES (64 * MIB) /* as the card has it */
#define LIMIT_STACK 0
#define STACK_BYTES 1024
#define STACK_LANES (132ULL * 2048) /* threads that the card has room for, each with a stack */

/* A fat binary's head, all that the simulated driver reads of it: code of any length for nothing. */
struct image {
	uint32_t magic;
	uint16_t version, head_bytes;
	uint64_t bytes;
};

/* Memory in it goes with it, freed or not. */
static void fill_context(struct ways_thread *t, struct held *h)
{
	uint64_t bytes = 2 * MIB + pick(t, 8 * MIB);
	CUDA_ARRAY_DESCRIPTOR d = { 512, 512, CU_AD_FORMAT_FLOAT, 4 };
	CUdeviceptr inside;
	CUarray array;

	CUresult result = cuMemAlloc_v2(&inside, bytes);
	if (result == CUDA_SUCCESS)
		h->bytes += bytes;
	else if (result != CUDA_ERROR_OUT_OF_MEMORY)
		GPU_DO(result);
	result = cuArrayCreate_v2(&array, &d);
	if (result == CUDA_SUCCESS && pick(t, 2))
		GPU_DO(cuArrayDestroy(array));
	else if (result != CUDA_SUCCESS && result != CUDA_ERROR_OUT_OF_MEMORY)
		GPU_DO(result);
}

CUresult get_context(struct ways_thread *t, struct held *h)
{
	CUresult result;

	switch (pick(t, 3)) {
	case 0: result = cuCtxCreate_v2(&h->context, 0, 0); break;
	case 1: result = cuCtxCreate_v3(&h->context, NULL, 0, 0, 0); break;
	default: result = cuCtxCreate_v4(&h->context, NULL, 0, 0);
	}
	if (result != CUDA_SUCCESS)
		return result;
	h->bytes = CONTEXT_BYTES;
	fill_context(t, h);
	GPU_DO(cuCtxPopCurrent_v2(&h->context));
	return result;
}

bool put_context(struct ways_thread *t, struct held *h)
{
	GPU_DO(cuCtxDestroy_v2(h->context));
	return true;
}

/* Costs nothing while the primary context is there; its memory is of the primary context. */
CUresult get_green(struct ways_thread *t, struct held *h)
{
	GPU_DO(cuGreenCtxCreate(&h->green, NULL, 0, 1));
	h->bytes = 1 + pick(t, 16 * MIB);
	CUresult result = cuMemAlloc_v2(&h->ptr, h->bytes);
	if (result != CUDA_SUCCESS)
		GPU_DO(cuGreenCtxDestroy(h->green));
	return result;
}

bool put_green(struct ways_thread *t, struct held *h)
{
	bool is_memory_first = pick(t, 2);

	if (is_memory_first)
		GPU_DO(cuMemFree_v2(h->ptr));
	GPU_DO(cuGreenCtxDestroy(h->green));
	if (!is_memory_first)
		GPU_DO(cuMemFree_v2(h->ptr));
	return true;
}

/* Whole pages of code, none so small that a context has room for it. */
static struct image make_image(struct ways_thread *t, struct held *h)
{
	struct image image = { 0xba55ed50U, 1, sizeof(image), 0 };

	h->late_bytes = (1 + pick(t, 3)) * 2 * MIB;
	image.bytes = h->late_bytes - sizeof(image);
	ways_late(t, (int64_t)h->late_bytes);
	return image;
}

/* What did not fit was on the card till the library knew, and was undone. */
static CUresult loaded(struct ways_thread *t, const struct held *h, CUresult result)
{
	if (result != CUDA_SUCCESS)
		ways_late(t, -(int64_t)h->late_bytes);
	return result;
}

CUresult get_module(struct ways_thread *t, struct held *h)
{
	struct image image = make_image(t, h);

	return loaded(t, h, cuModuleLoadData(&h->module, &image));
}

bool put_module(struct ways_thread *t, struct held *h)
{
	GPU_DO(cuModuleUnload(h->module));
	ways_late(t, -(int64_t)h->late_bytes);
	return true;
}

CUresult get_library(struct ways_thread *t, struct held *h)
{
	struct image image = make_image(t, h);

	return loaded(t, h, cuLibraryLoadData(&h->library, &image, NULL, NULL, 0, NULL, NULL, 0));
}

bool put_library(struct ways_thread *t, struct held *h)
{
	GPU_DO(cuLibraryUnload(h->library));
	ways_late(t, -(int64_t)h->late_bytes);
	return true;
}

/* The primary context has one size of stacks: one thread of the process may hold it. */
CUresult get_stack(struct ways_thread *t, struct held *h)
{
	uint64_t more = 16 * (1 + pick(t, 8));

	if (atomic_exchange(&t->process->stack_taken, 1))
		return CUDA_ERROR_NOT_READY;
	h->late_bytes = (STACK_LANES * more + 2 * MIB - 1) / (2 * MIB) * (2 * MIB);
	ways_late(t, (int64_t)h->late_bytes);
	CUresult result = loaded(t, h, cuCtxSetLimit(LIMIT_STACK, STACK_BYTES + more));
	if (result != CUDA_SUCCESS)
		atomic_store(&t->process->stack_taken, 0);
	return result;
}

bool put_stack(struct ways_thread *t, struct held *h)
{
	GPU_DO(cuCtxSetLimit(LIMIT_STACK, STACK_BYTES));
	ways_late(t, -(int64_t)h->late_bytes);
	atomic_store(&t->process->stack_taken, 0);
	return true;
}
