/* Start of the driver, and the look-ups that hand out its functions. */
#include "interpose/config.h"
#include "interpose/guest.h"
#include "interpose/hooks.h"
#include "interpose/real.h"

CUresult hook_init(CUresult (*init)(unsigned int), unsigned int flags)
{
	if (guest_join() == GUEST_REFUSED)
		return CUDA_ERROR_SYSTEM_NOT_READY;
	return init(flags);
}

/* The driver has decided version and variant: hand out the hook of the very symbol it chose. */
static CUresult substitute(CUresult result, void **pfn)
{
	if (result == CUDA_SUCCESS && pfn && *pfn && *config_socket()) {
		void *hook = real_hook_of_address(*pfn);
		if (hook)
			*pfn = hook;
	}
	return result;
}

CUresult hook_get_proc_address(CUresult (*get)(const char *, void **, int, cuuint64_t),
			       const char *symbol, void **pfn, int version, cuuint64_t flags)
{
	return substitute(get(symbol, pfn, version, flags), pfn);
}

CUresult hook_get_proc_address_v2(CUresult (*get)(const char *, void **, int, cuuint64_t,
						  CUdriverProcAddressQueryResult *),
				  const char *symbol, void **pfn, int version, cuuint64_t flags,
				  CUdriverProcAddressQueryResult *status)
{
	return substitute(get(symbol, pfn, version, flags, status), pfn);
}
