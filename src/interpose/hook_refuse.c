/*
 * What no tenant may call: memory or work that would escape its quotas in a way that can't be counted
 * (driver_decisions.h has each reason). Without a tenant, passed as all else.
 */
#include "interpose/guest.h"
#include "interpose/hooks.h"
#include "interpose/log.h"
#include "interpose/real.h"

#define UNWRAP(...) __VA_ARGS__

static CUresult refuse(const char *symbol)
{
	CUcontext context;

	if (real.cuCtxGetCurrent && real.cuCtxGetCurrent(&context) == CUDA_ERROR_NOT_INITIALIZED)
		return CUDA_ERROR_NOT_INITIALIZED;
	log_debug("%s: refused in a tenant", symbol);
	return CUDA_ERROR_NOT_SUPPORTED;
}

#define REFUSE(symbol, hook, params, args) \
	CUresult hook_##hook(CUresult(*real_function) params, UNWRAP params) \
	{ \
		return guest_is_active() ? refuse(#symbol) : real_function args; \
	}

DRIVER_TABLE_REFUSED(REFUSE)
