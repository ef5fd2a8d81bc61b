#include "interpose/charge.h"

#include "interpose/hook_pool.h"
#include "interpose/ledger.h"
#include "interpose/log.h"
#include "interpose/real.h"

#define SHARED_CHUNK_STEP 512ULL
#define SHARED_CHUNK_MAX (1 * MIB)
#define PAGE (2 * MIB)

uint64_t charge_rounded(uint64_t bytes)
{
	uint64_t step = bytes <= SHARED_CHUNK_MAX ? SHARED_CHUNK_STEP : PAGE;

	if (bytes > UINT64_MAX - step)
		return UINT64_MAX;
	return (bytes + step - 1) / step * step;
}

int charge_reserve(int index, uint64_t bytes)
{
	if (ledger_reserve(index, bytes, false) == 0)
		return 0;
	hook_pool_trim(index);
	int error = ledger_reserve(index, bytes, true);
	if (error)
		log_debug("device %d: %llu bytes refused: %llu of %llu in use", index,
			  (unsigned long long)bytes, (unsigned long long)ledger_used(index),
			  (unsigned long long)ledger_quota(index));
	return error;
}

bool charge_remember(enum holding_kind kind, uint64_t key, int index, uint64_t bytes, uint64_t owner)
{
	struct holding h = {
		.kind = kind,
		.key = key,
		.device = index,
		.bytes = bytes,
		.owner = owner,
	};

	if (ptrmap_insert(&h))
		return true;
	ledger_release(index, bytes);
	return false;
}

uint64_t charge_owner(void)
{
	CUcontext context = NULL;

	if (real.cuCtxGetCurrent)
		real.cuCtxGetCurrent(&context);
	return (uint64_t)(uintptr_t)context;
}
