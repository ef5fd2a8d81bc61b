/* A kernel's blocks are spread evenly over its process's SMs. A block takes a part of an SM in proportion to its threads. */
#include <stdlib.h>

#include "sim/cuda/sim.h"

#define SM_THREADS 2048
#define SM_BLOCKS 32
#define ALL 1000000  /* all SMs of a GPU, in millionths */
#define COPIES 10000 /* millionths: a copy takes hardly any SMs */
#define TAIL_WAVES 0.2

uint32_t sim_space_sms(const struct sim_device *device)
{
	const char *text = getenv("CUDA_MPS_ACTIVE_THREAD_PERCENTAGE");
	double all = (double)device->info.sms, percentage = text ? atof(text) : 0;

	if (!(percentage > 0) || percentage >= 100 || !link_mps_server())
		return (uint32_t)device->info.sms;
	/* A real GPU rounds down to pairs of SMs. */
	return percentage * all >= 200 ? 2 * (uint32_t)(percentage * all / 200) : 1;
}

uint64_t sim_space_limit(CUcontext ctx)
{
	return (uint64_t)ctx->sms * ALL / (uint64_t)sim_context_device(ctx)->info.sms;
}

/* Counts at most busy_threads of a block's threads, because so many keep a whole SM busy. */
static uint64_t busy_threads(const struct sim_card_info *info, uint64_t threads)
{
	return SIM_MIN(threads, info->busy_threads);
}

/* Returns the part of the GPU that a kernel takes, in millionths. */
static uint64_t part_of(const struct sim_card_info *info, const struct sim_step *step)
{
	uint64_t full = (uint64_t)info->sms * info->busy_threads;
	uint64_t busy = SIM_MIN(step->blocks, full) * busy_threads(info, step->threads);

	return SIM_MAX(SIM_MIN(busy, full) * ALL / full, 1);
}

/*
 * Returns how long the SM with the most blocks works, as a multiple of the time of an SM whose blocks have at most busy_threads
 * threads together. At least 1.
 */
static double sm_length(const struct sim_card_info *info, const struct sim_step *step, uint64_t sms)
{
	uint64_t most = (step->blocks - 1) / sms + 1;
	double length = (double)most * (double)busy_threads(info, step->threads) /
			(double)info->busy_threads;

	return SIM_MAX(length, 1);
}

/*
 * Returns how many times longer a kernel takes on `sms` SMs than on all, as measured on an H200. If all blocks fit on the GPU
 * at once, the SM with the most blocks sets the time. Otherwise the time is the number of waves that the blocks need, plus
 * TAIL_WAVES.
 */
static double slowdown(const struct sim_card_info *info, const struct sim_step *step, uint64_t sms)
{
	uint64_t fit = SIM_MIN(SM_THREADS / SIM_MIN(step->threads, SM_THREADS), SM_BLOCKS);
	uint64_t all = (uint64_t)info->sms, needed = (step->blocks - 1) / fit + 1;

	if (needed <= all)
		return sm_length(info, step, sms) / sm_length(info, step, all);
	return ((double)needed / (double)sms + TAIL_WAVES) /
	       ((double)needed / (double)all + TAIL_WAVES);
}

void sim_space_fit(CUstream stream, const struct sim_step *step, uint64_t *ret_ns,
		   uint64_t *ret_part)
{
	const struct sim_card_info *info = &sim_context_device(stream->ctx)->info;
	uint64_t sms = stream->ctx->sms;
	double longer;

	*ret_ns = step->ns;
	*ret_part = COPIES;
	if (step->kind != STEP_KERNEL)
		return;
	*ret_part = part_of(info, step);
	if (sms >= (uint64_t)info->sms)
		return;
	/* On fewer SMs, a kernel takes longer and occupies a smaller part of the GPU. An endless kernel stays endless. */
	longer = slowdown(info, step, sms);
	*ret_part = SIM_MIN((uint64_t)((double)*ret_part / longer), sim_space_limit(stream->ctx));
	if (step->ns < UINT64_MAX / 4)
		*ret_ns = (uint64_t)((double)step->ns * longer);
}
