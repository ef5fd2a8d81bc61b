/* A tenant may not call these functions: their memory or work cannot be counted against its quotas (driver_decisions.h). */
#include "library/entry/hooks.h"
#include "library/loader/real.h"
#include "library/state/process_state.h"
#include "library/sys/log.h"

/* Before cuInit the driver itself refuses these calls, and returns its own error. */
static bool is_initialized(void)
{
	CUcontext context;

	return !real.cuCtxGetCurrent || real.cuCtxGetCurrent(&context) != CUDA_ERROR_NOT_INITIALIZED;
}

static CUresult refuse(const char *symbol)
{
	log_debug("%s: refused: allot can't enforce a tenant's limits on it", symbol);
	return CUDA_ERROR_NOT_SUPPORTED;
}

#define REFUSE(symbol, hook, params, args) \
	DEFINE_HOOK(hook_##hook, real_function, params) \
	{ \
		return process_is_active() && is_initialized() ? refuse(#symbol) \
							       : real_function args; \
	}

DRIVER_TABLE_REFUSED(REFUSE)
