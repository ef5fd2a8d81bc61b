/* Start of the driver, and the look-ups that hand out its functions. */
#include "interpose/config.h"
#include "interpose/guest.h"
#include "interpose/hooks.h"
#include "interpose/real.h"
#include "interpose/unknown.h"
#include "interpose/visible.h"

CUresult hook_init(CUresult (*init)(unsigned int), unsigned int flags)
{
	enum guest_mode mode = guest_join();

	if (mode == GUEST_REFUSED)
		return CUDA_ERROR_SYSTEM_NOT_READY;
	char *visible = mode == GUEST_ACTIVE ? visible_begin() : NULL;
	CUresult result = init(flags);
	visible_end(visible);
	return result;
}

/*
 * The driver has decided version and variant: hand out the hook of the very symbol it chose. A form of
 * a governed name that is in no row is handled by policy.
 */
static CUresult substitute(CUresult result, const char *symbol, void **pfn,
			   CUdriverProcAddressQueryResult *status)
{
	if (result != CUDA_SUCCESS || !pfn || !*pfn || !*config_socket())
		return result;
	void *hook = real_hook_of_known(*pfn);
	if (hook) {
		*pfn = hook;
	} else if (real_governs_form_of(symbol) && unknown_is_refused(symbol)) {
		*pfn = NULL;
		if (status)
			*status = CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
		return CUDA_ERROR_NOT_FOUND;
	}
	return result;
}

CUresult hook_get_proc_address(CUresult (*get)(const char *, void **, int, cuuint64_t),
			       const char *symbol, void **pfn, int version, cuuint64_t flags)
{
	return substitute(get(symbol, pfn, version, flags), symbol, pfn, NULL);
}

CUresult hook_get_proc_address_v2(CUresult (*get)(const char *, void **, int, cuuint64_t,
						  CUdriverProcAddressQueryResult *),
				  const char *symbol, void **pfn, int version, cuuint64_t flags,
				  CUdriverProcAddressQueryResult *status)
{
	return substitute(get(symbol, pfn, version, flags, status), symbol, pfn, status);
}
