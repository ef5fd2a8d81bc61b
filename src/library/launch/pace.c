#include "library/launch/pace.h"

#include "library/loader/real.h"

/* What an SM holds at a time, of all cards since 2016. */
#define SM_THREADS 2048
#define SM_BLOCKS 32
#define WHOLE_X100 10000
/*
 * A kernel's last blocks leave SMs idle, and of the whole card more of them than of a part: so a part of n of 132 SMs does 1.3
 * to 2.3 % more than n/132 of the card's work (H200: kernels of 8,192 blocks, 12 to 66 SMs). As if each kernel took so many
 * waves of blocks more. Of few waves it is their number that counts, not this.
 */
#define TAIL_WAVES_X100 20
#define WAVES_LEAST 4 /* of the whole card */
#define SM_COUNT 16   /* CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT */

_Atomic uint32_t pace_sms[REGION_MAX_DEVICES];

uint32_t pace_ask_sms(int index)
{
	CUdevice device;
	int count = 0;

	if (real.cuDeviceGetAttribute && real.cuCtxGetDevice &&
	    real.cuCtxGetDevice(&device) == CUDA_SUCCESS &&
	    real.cuDeviceGetAttribute(&count, SM_COUNT, device) == CUDA_SUCCESS && count > 0)
		atomic_store_explicit(&pace_sms[index], (uint32_t)count, memory_order_relaxed);
	return count > 0 ? (uint32_t)count : 1;
}

uint32_t pace_part_x100(const struct work *work, uint32_t sms, uint32_t most)
{
	uint64_t fit, needed;

	if (work->kind == WORK_IS_GRAPH)
		return most;
	if (work->kind != WORK_IS_KERNEL)
		return 0;
	fit = work->threads > SM_THREADS / SM_BLOCKS ? SM_THREADS / work->threads : SM_BLOCKS;
	if (fit > 1)
		needed = work->blocks / fit + (work->blocks % fit != 0);
	else
		needed = work->blocks;
	if (needed < sms)
		return (uint32_t)(needed * most / sms);
	if (most < WHOLE_X100 && needed < UINT32_MAX) {
		uint64_t all = (uint64_t)sms * WHOLE_X100 / most;

		if (needed >= WAVES_LEAST * all)
			return (uint32_t)(WHOLE_X100 * sms * (100 * needed + TAIL_WAVES_X100 * all) /
					  (all * (100 * needed + TAIL_WAVES_X100 * sms)));
	}
	return most;
}

/* Nanoseconds of the whole card; ns: PACE_MOST at most. */
static uint64_t sm_time(int index, const struct work *work, uint64_t ns, uint32_t most)
{
	uint32_t sms = atomic_load_explicit(&pace_sms[index], memory_order_relaxed);
	uint32_t part = pace_part_x100(work, likely(sms) ? sms : pace_ask_sms(index), most);

	return ns / WHOLE_X100 * part + ns % WHOLE_X100 * part / WHOLE_X100;
}

void pace_note(int index, const struct work *work, uint64_t ns)
{
	struct region_report *report = atomic_load_explicit(&guest.report, memory_order_acquire);
	uint32_t most = pace_most_x100(index);

	atomic_fetch_add_explicit(&report->spent[index].filled_ns,
				  sm_time(index, work, ns < PACE_MOST ? ns : PACE_MOST,
					  most ? most : WHOLE_X100),
				  memory_order_relaxed);
}

void pace_book(int index, uint64_t ns, bool is_untried)
{
	struct region_report *report = atomic_load_explicit(&guest.report, memory_order_acquire);

	/* It does no longer: what it paid meanwhile is nobody's concern. */
	if (!pace_most_x100(index))
		return;
	if (ns > PACE_MOST)
		ns = PACE_MOST;
	/* Nothing is for nothing. */
	atomic_fetch_add(&report->spent[index].tokens, ns ? ns : 1);
	atomic_fetch_add_explicit(&report->spent[index].work_ns, ns, memory_order_relaxed);
	if (unlikely(is_untried))
		atomic_fetch_add_explicit(&report->spent[index].untried_ns, ns,
					  memory_order_relaxed);
}
