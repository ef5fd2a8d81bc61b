#include "library/swap/swap_copy.h"

#include "library/loader/real.h"
#include "library/state/process_state.h"
#include "library/swap/swap_arena.h"

/* Bytes that are copied per GPU between two calls of may_continue(). */
#define PART_BYTES (UINT64_C(256) << 20)
#define NON_BLOCKING 1 /* CU_STREAM_NON_BLOCKING */

struct lane {
	int index;
	CUcontext context;
	CUstream stream;
	uint32_t at;         /* where swap_backing_next() continues */
	struct backing *now; /* the backing being copied; NULL if none */
	uint64_t done;       /* bytes of `now` already copied */
	bool has_ended;
};

static struct lane *lane_of(struct lane *lanes, uint32_t count, int index)
{
	for (uint32_t i = 0; i < count; i++)
		if (lanes[i].index == index)
			return &lanes[i];
	return NULL;
}

/* Makes a lane for each GPU that has something to move. On failure, too, *ret_count streams must be destroyed. */
static CUresult make_lanes(struct lane *lanes, uint32_t *ret_count)
{
	uint32_t at = 0, count = 0;
	CUresult result = CUDA_SUCCESS;

	for (struct backing *b; result == CUDA_SUCCESS && (b = swap_backing_next(&at));) {
		if (b->is_kept || lane_of(lanes, count, b->index))
			continue;
		lanes[count] = (struct lane){ .index = b->index, .context = b->owner };
		result = real.cuCtxSetCurrent(b->owner);
		if (result == CUDA_SUCCESS)
			result = real.cuStreamCreate(&lanes[count].stream, NON_BLOCKING);
		count += result == CUDA_SUCCESS;
	}
	*ret_count = count;
	return result;
}

static bool find_next(struct lane *lane)
{
	for (struct backing *b; !lane->now && (b = swap_backing_next(&lane->at));)
		if (b->index == lane->index && !b->is_kept) {
			lane->now = b;
			lane->done = 0;
		}
	lane->has_ended = !lane->now;
	return lane->now;
}

/* Copies up to the end of the backing or of the arena's chunk, whichever comes first. */
static CUresult copy_contiguous(struct lane *lane, enum swap_copy way, uint64_t *bytes)
{
	const struct backing *b = lane->now;
	CUdeviceptr card = b->base + lane->done;
	uint64_t run;
	void *host = swap_arena_at(b->arena_offset + lane->done, &run);

	if (run > b->bytes - lane->done)
		run = b->bytes - lane->done;
	lane->done += run;
	if (lane->done == b->bytes)
		lane->now = NULL;
	*bytes += run;
	return way == SWAP_COPY_OUT ? real.cuMemcpyDtoHAsync_v2(host, card, run, lane->stream)
				    : real.cuMemcpyHtoDAsync_v2(card, host, run, lane->stream);
}

static CUresult copy_part(struct lane *lane, enum swap_copy way, uint64_t *bytes)
{
	CUresult result = lane->has_ended ? CUDA_SUCCESS : real.cuCtxSetCurrent(lane->context);
	uint64_t begun = 0;

	while (result == CUDA_SUCCESS && begun < PART_BYTES && !lane->has_ended && find_next(lane))
		result = copy_contiguous(lane, way, &begun);
	*bytes += begun;
	return result;
}

/* Copies one part per GPU, so that the daemon sees progress. Sets *ret_goes_on to false if nothing was left. */
static CUresult copy_parts(struct lane *lanes, uint32_t count, enum swap_copy way,
			   uint64_t *copied_bytes, bool *ret_goes_on)
{
	struct region_slot *slot = atomic_load(&process_state.slot);
	CUresult result = CUDA_SUCCESS;
	uint64_t bytes = 0;

	for (uint32_t i = 0; i < count && result == CUDA_SUCCESS; i++)
		result = copy_part(&lanes[i], way, &bytes);
	/* No copy may be in flight when this returns, so wait even after an error. */
	for (uint32_t i = 0; i < count; i++) {
		CUresult end = real.cuStreamSynchronize(lanes[i].stream);
		result = result == CUDA_SUCCESS ? end : result;
	}
	*copied_bytes += bytes;
	atomic_fetch_add(&slot->swap_progress_bytes, bytes);
	atomic_store(&slot->swap_copied_mib, (uint32_t)(*copied_bytes >> 20));
	*ret_goes_on = bytes;
	return result;
}

CUresult swap_copy_all(enum swap_copy way, bool (*may_continue)(void))
{
	struct lane lanes[REGION_MAX_DEVICES];
	uint32_t count;
	bool is_more = true;
	uint64_t copied_bytes = 0;
	CUresult result = make_lanes(lanes, &count);

	while (is_more && result == CUDA_SUCCESS) {
		result = copy_parts(lanes, count, way, &copied_bytes, &is_more);
		if (is_more && result == CUDA_SUCCESS && !may_continue())
			result = CUDA_ERROR_NOT_READY;
	}
	for (uint32_t i = 0; i < count; i++)
		real.cuStreamDestroy_v2(lanes[i].stream);
	return result;
}
