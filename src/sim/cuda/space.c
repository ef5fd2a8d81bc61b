/* What clients of MPS have of a card: a part of its SMs, and of these what a kernel's blocks need. */
#include <stdlib.h>

#include "sim/cuda/sim.h"

#define SM_THREADS 2048
#define SM_BLOCKS 32
#define ALL 1000000  /* of a card's SMs, as SIM_WORK has it */
#define COPIES 10000 /* of these: copies hardly take any */
#define TAIL_WAVES 0.2

uint32_t sim_space_sms(const struct sim_device *device)
{
	const char *text = getenv("CUDA_MPS_ACTIVE_THREAD_PERCENTAGE");
	double all = (double)device->info.sms, percentage = text ? atof(text) : 0;

	if (!(percentage > 0) || percentage >= 100 || !link_mps_server())
		return (uint32_t)device->info.sms;
	/* Whole pairs, rounded down. */
	return percentage * all >= 200 ? 2 * (uint32_t)(percentage * all / 200) : 1;
}

uint32_t sim_kernel_sms(uint64_t blocks, uint64_t threads)
{
	uint64_t fit = SIM_MIN(SM_THREADS / SIM_MAX(SIM_MIN(threads, SM_THREADS), 1), SM_BLOCKS);

	return (uint32_t)SIM_MIN((blocks + fit - 1) / fit, UINT32_MAX);
}

/*
 * How much longer a kernel takes than with the whole card, where it is as on an H200 (2026-11-23): of few blocks by whole waves;
 * of many by their number, and as if each kernel had a fifth of a wave more.
 */
static double times_longer(uint64_t needed, uint64_t sms, uint64_t all)
{
	double waves = (double)needed / (double)sms;

	if (needed <= all)
		return (double)((needed + sms - 1) / sms);
	return (waves + TAIL_WAVES) / ((double)needed / (double)all + TAIL_WAVES);
}

void sim_space_fit(CUstream stream, const struct sim_step *step, uint64_t *ret_ns,
		   uint64_t *ret_part)
{
	uint64_t all = (uint64_t)sim_context_device(stream->ctx)->info.sms;
	uint64_t needed = step->sms ? step->sms : all, wanted = needed < all ? needed : all;
	uint64_t sms = SIM_MIN(wanted, stream->ctx->sms);

	*ret_ns = step->ns;
	*ret_part = COPIES;
	if (step->kind != STEP_KERNEL)
		return;
	*ret_part = sms * ALL / all;
	/* In a smaller part of the card, the longer; what lasts for ever does. */
	if (sms < wanted && step->ns < UINT64_MAX / 4)
		*ret_ns = (uint64_t)((double)step->ns * times_longer(needed, sms, all));
}
