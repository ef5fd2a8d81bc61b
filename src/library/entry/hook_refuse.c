/*
 * What no tenant may call: memory or work that would escape its quotas in a way that can't be counted
 * (driver_decisions.h has each reason). Without a tenant, passed as all else.
 */
#include "library/entry/hooks.h"
#include "library/loader/real.h"
#include "library/state/process_state.h"
#include "library/sys/log.h"

#define UNWRAP(...) __VA_ARGS__

/* Before cuInit nothing can be done, and the driver says so, or what is wrong with the arguments. */
static bool is_initialized(void)
{
	CUcontext context;

	return !real.cuCtxGetCurrent || real.cuCtxGetCurrent(&context) != CUDA_ERROR_NOT_INITIALIZED;
}

static CUresult refuse(const char *symbol)
{
	log_debug("%s: refused in a tenant", symbol);
	return CUDA_ERROR_NOT_SUPPORTED;
}

#define REFUSE(symbol, hook, params, args) \
	CUresult hook_##hook(CUresult(*real_function) params, UNWRAP params) \
	{ \
		return process_is_active() && is_initialized() ? refuse(#symbol) \
							       : real_function args; \
	}

DRIVER_TABLE_REFUSED(REFUSE)
