/*
 * Small linear memory shares chunks of 2 MiB, and the ledger charges the pieces. What of a chunk is no
 * piece is no call's: the daemon's looks charge it, like code (architecture.md, "What a request costs on
 * the card"). So it is told as late, to the byte.
 */
#include "ways.h"

#define STEP 512ULL

static bool is_small(uint64_t bytes)
{
	return bytes <= MIB;
}

static uint64_t charged(uint64_t bytes)
{
	return (bytes + STEP - 1) / STEP * STEP;
}

static void rest(struct ways_thread *t, int64_t bytes)
{
	atomic_fetch_add(&t->process->board->rest_bytes, (uint64_t)bytes);
	ways_late(t, bytes);
}

/* One piece more in the chunk, or less. True when it is the first, or was the last. */
static bool count(struct ways_process *p, CUdeviceptr ptr, int pieces)
{
	uint64_t number = ptr / WAYS_PAGE, i = number % WAYS_CHUNKS;

	pthread_mutex_lock(&p->chunk_lock);
	/* A number that is there stays: few addresses are ever used. */
	while (p->chunk[i].number && p->chunk[i].number != number)
		i = (i + 1) % WAYS_CHUNKS;
	p->chunk[i].number = number;
	uint32_t before = p->chunk[i].pieces;
	uint32_t after = p->chunk[i].pieces = before + (uint32_t)pieces;
	pthread_mutex_unlock(&p->chunk_lock);
	return before == 0 || after == 0;
}

/* Perhaps it makes a chunk. */
void ways_chunk_before(struct ways_thread *t, uint64_t bytes)
{
	if (is_small(bytes))
		rest(t, WAYS_PAGE);
}

void ways_chunk_after(struct ways_thread *t, CUresult result, CUdeviceptr ptr, uint64_t bytes)
{
	if (!is_small(bytes))
		return;
	if (result != CUDA_SUCCESS || !count(t->process, ptr, 1))
		rest(t, -(int64_t)WAYS_PAGE);
	if (result == CUDA_SUCCESS)
		rest(t, -(int64_t)charged(bytes));
}

void ways_chunk_freed(struct ways_thread *t, CUdeviceptr ptr, uint64_t bytes)
{
	if (!is_small(bytes))
		return;
	rest(t, (int64_t)charged(bytes));
	if (count(t->process, ptr, -1))
		rest(t, -(int64_t)WAYS_PAGE);
}

CUresult ways_alloc(struct ways_thread *t, CUdeviceptr *ret_ptr, uint64_t bytes)
{
	ways_chunk_before(t, bytes);
	CUresult result = cuMemAlloc_v2(ret_ptr, bytes);
	ways_chunk_after(t, result, *ret_ptr, bytes);
	return result;
}

void ways_free(struct ways_thread *t, CUdeviceptr ptr, uint64_t bytes)
{
	GPU_DO(cuMemFree_v2(ptr));
	ways_chunk_freed(t, ptr, bytes);
}
