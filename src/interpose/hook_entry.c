/* Start of the driver, and the look-ups that hand out its functions. */
#include "interpose/answers.h"
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
static void substitute(struct answer *a, const struct question *q)
{
	if (q->is_passed || a->result != CUDA_SUCCESS || !a->pfn)
		return;
	void *hook = real_hook_of_answer(a->pfn);
	if (hook)
		a->pfn = hook;
	else if (real_governs_form_of(q->name) && unknown_is_refused(q->name))
		*a = (struct answer){ NULL, CUDA_ERROR_NOT_FOUND,
				      CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND };
}

/* What the driver says that it has, or has not, it will say again. Else it may be asked too early. */
static void keep(const struct question *q, const struct answer *a)
{
	if (a->result == CUDA_SUCCESS || a->result == CUDA_ERROR_NOT_FOUND)
		answers_keep(q, a);
}

CUresult hook_get_proc_address(CUresult (*get)(const char *, void **, int, cuuint64_t),
			       const char *symbol, void **pfn, int version, cuuint64_t flags)
{
	struct question q = { (const void *)get, symbol, version, flags };
	struct answer a = { 0 };

	if (!symbol || !pfn || !*config_socket())
		return get(symbol, pfn, version, flags);
	if (!answers_find(&q, &a)) {
		a.result = get(symbol, &a.pfn, version, flags);
		substitute(&a, &q);
		keep(&q, &a);
	}
	*pfn = a.pfn;
	return a.result;
}

CUresult hook_get_proc_address_v2(CUresult (*get)(const char *, void **, int, cuuint64_t,
						  CUdriverProcAddressQueryResult *),
				  const char *symbol, void **pfn, int version, cuuint64_t flags,
				  CUdriverProcAddressQueryResult *status)
{
	struct question q = { (const void *)get, symbol, version, flags };
	struct answer a = { 0 };

	if (!symbol || !pfn || !*config_socket())
		return get(symbol, pfn, version, flags, status);
	if (!answers_find(&q, &a)) {
		a.result = get(symbol, &a.pfn, version, flags, &a.status);
		substitute(&a, &q);
		keep(&q, &a);
	}
	*pfn = a.pfn;
	if (status)
		*status = a.status;
	return a.result;
}
