/*
 * What no tenant may call: memory or work that would escape its quotas in a way that can't be counted
 * (driver_decisions.h has each reason). Without a tenant, passed as all else.
 */
#include "interpose/guest.h"
#include "interpose/hooks.h"
#include "interpose/log.h"

#define UNWRAP(...) __VA_ARGS__

#define REFUSE(symbol, hook, params, args) \
	CUresult hook_##hook(CUresult(*real_function) params, UNWRAP params) \
	{ \
		if (!guest_is_active()) \
			return real_function args; \
		log_debug(#symbol ": refused in a tenant"); \
		return CUDA_ERROR_NOT_SUPPORTED; \
	}

DRIVER_TABLE_REFUSED(REFUSE)
