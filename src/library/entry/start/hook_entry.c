#include "library/entry/hooks.h"
#include "library/entry/start/answers.h"
#include "library/entry/start/visible.h"
#include "library/launch/pace.h"
#include "library/loader/known.h"
#include "library/loader/name.h"
#include "library/loader/real.h"
#include "library/loader/unknown.h"
#include "library/process.h"
#include "library/state/process_state.h"
#include "library/sys/config.h"

#define MPS_PATIENCE_NS (10 * NS_PER_S) /* how long cuInit waits for a new MPS server */
/* The pause before a retry: longer than the daemon takes to notice that an MPS server has ended. */
#define MPS_PAUSE_NS (200 * NS_PER_MS)

static CUresult init_once(CUresult (*init)(unsigned int), unsigned int flags)
{
	bool is_visible = visible_begin();
	CUresult result = init(flags);
	visible_end(is_visible);
	return result;
}

static bool is_mps_unavailable(CUresult result)
{
	return result == CUDA_ERROR_MPS_CONNECTION_FAILED || result == CUDA_ERROR_MPS_RPC_FAILURE ||
	       result == CUDA_ERROR_MPS_SERVER_NOT_READY;
}

/*
 * If the tenant's MPS server has ended since this process joined, rejoins, which waits for a new server, and then retries. A
 * retry without that wait might find no MPS control daemon, and then the process would run without MPS.
 */
static CUresult init_with_mps(CUresult (*init)(unsigned int), unsigned int flags)
{
	uint64_t since_ns = sys_now_ns();
	CUresult result = init_once(init, flags);

	while (is_mps_unavailable(result) && pace_most_x100(0) &&
	       sys_now_ns() - since_ns < MPS_PATIENCE_NS) {
		sys_sleep_ns(MPS_PAUSE_NS);
		if (process_rejoin())
			result = init_once(init, flags);
	}
	return result;
}

DEFINE_HOOK(hook_init, init, (unsigned int flags))
{
	switch (process_join()) {
	case PROCESS_REFUSED: return CUDA_ERROR_SYSTEM_NOT_READY;
	case PROCESS_ACTIVE: return init_with_mps(init, flags);
	default: return init(flags);
	}
}

/*
 * Replaces the function in the driver's answer by its hook, if it has one. Returns true if the function must be hidden. Such a
 * function is a version or variant (such as _v3 or _ptsz) of a hooked one, and has no row in driver_table.h.
 */
static bool substitute(struct answer *a, const char *name)
{
	if (a->result != CUDA_SUCCESS || !a->pfn)
		return false;
	void *hook = real_hook_of_answer(a->pfn);
	if (hook) {
		a->pfn = hook;
		return false;
	}
	return real_hooks_form_of(name) && unknown_is_refused(name);
}

/* Stores only a function, or that the name does not exist. Other errors may mean that the driver was asked too early. */
static void store_if_final(const struct question *q, const struct answer *a)
{
	if (a->result == CUDA_SUCCESS || (a->result == CUDA_ERROR_NOT_FOUND && !a->pfn))
		answers_store(q, a);
}

static uint64_t hash_of(const char *name)
{
	return name_hash(name, name_length(name));
}

DEFINE_HOOK(hook_get_proc_address, get,
	    (const char *symbol, void **pfn, int version, cuuint64_t flags))
{
	if (!symbol || !pfn || !*config_socket())
		return get(symbol, pfn, version, flags);
	struct question q = { (const void *)get, hash_of(symbol), version, flags };
	if (likely(known_look_up(q.hash, version, flags, pfn) == KNOWN_FOUND))
		return CUDA_SUCCESS;
	struct answer a = { .pfn = NULL };
	if (!answers_find(&q, &a)) {
		a.result = get(symbol, &a.pfn, version, flags);
		if (substitute(&a, symbol))
			a = (struct answer){ NULL, CUDA_ERROR_NOT_FOUND };
		store_if_final(&q, &a);
	}
	if (a.result == CUDA_SUCCESS)
		*pfn = a.pfn;
	return a.result;
}

/* For a name that does not exist, returns success with the status SYMBOL_NOT_FOUND, as the driver does. */
DEFINE_HOOK(hook_get_proc_address_v2, get,
	    (const char *symbol, void **pfn, int version, cuuint64_t flags,
	     CUdriverProcAddressQueryResult *status))
{
	CUdriverProcAddressQueryResult unread = CU_GET_PROC_ADDRESS_SUCCESS;

	if (!symbol || !pfn || !*config_socket())
		return get(symbol, pfn, version, flags, status);
	if (!status)
		status = &unread;
	struct question q = { (const void *)get, hash_of(symbol), version, flags };
	switch (known_look_up(q.hash, version, flags, pfn)) {
	case KNOWN_FOUND: *status = CU_GET_PROC_ADDRESS_SUCCESS; return CUDA_SUCCESS;
	case KNOWN_TOO_NEW:
		*pfn = NULL;
		*status = CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT;
		return CUDA_SUCCESS;
	case KNOWN_NOT: break;
	}
	struct answer a = { .pfn = NULL };
	if (!answers_find(&q, &a)) {
		a.result = get(symbol, &a.pfn, version, flags, &a.status);
		if (substitute(&a, symbol))
			a = (struct answer){ NULL, CUDA_SUCCESS,
					     CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND };
		store_if_final(&q, &a);
	}
	if (a.result == CUDA_SUCCESS) {
		*pfn = a.pfn;
		*status = a.status;
	}
	return a.result;
}
