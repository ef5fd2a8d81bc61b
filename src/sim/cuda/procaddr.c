/*
 * Looking functions up by base name and version, as the driver does: cuMemAlloc of CUDA 4.0 or
 * later is cuMemAlloc_v2. The table below names every symbol of both tables, so that one that is
 * declared and not defined fails at link; it is bound within this library, so that the addresses
 * are this library's whatever is loaded before it.
 */
#include <stdlib.h>
#include <string.h>

#include "sim/cuda/sim.h"
#include "sim/cuda/versions.h"

struct symbol {
	const char *name;
	void *address;
};

#define ROW_HOOK(symbol, hook, params, args) { #symbol, (void *)symbol },
#define ROW_WORK(symbol, streams, params, args, work) { #symbol, (void *)symbol },
#define ROW(symbol, params) { #symbol, (void *)symbol },
static const struct symbol symbols[] = { DRIVER_TABLE(ROW_HOOK, ROW_WORK) DRIVER_CALLS(ROW)
						 SIM_TABLE(ROW) };

#define ROW_VERSION(symbol, version) { #symbol, version },
static const struct {
	const char *name;
	int version;
} versions[] = { SIM_VERSIONS(ROW_VERSION) };

static int since(const char *name)
{
	if (!strcmp(name, "cuMemAlloc_v9"))
		return getenv("ALLOT_SIM_FUTURE") ? 2000 : SIM_DRIVER_VERSION + 1;
	for (size_t i = 0; i < sizeof(versions) / sizeof(*versions); i++)
		if (!strcmp(versions[i].name, name))
			return versions[i].version;
	return 2000;
}

/* Whether name is base, base_vN, or either with a per-thread suffix. */
static bool is_of(const char *name, const char *base, int *ret_revision, bool *ret_per_thread)
{
	size_t n = strlen(base);

	if (strncmp(name, base, n))
		return false;
	name += n;
	*ret_revision = 1;
	if (name[0] == '_' && name[1] == 'v' && name[2] >= '0' && name[2] <= '9') {
		*ret_revision = name[2] - '0';
		name += 3;
	}
	*ret_per_thread = !strcmp(name, "_ptsz") || !strcmp(name, "_ptds");
	return *ret_per_thread || !*name;
}

static CUdriverProcAddressQueryResult look_up(const char *base, int version, bool per_thread,
					      void **ret_address)
{
	CUdriverProcAddressQueryResult result = CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
	int best = -1;

	*ret_address = NULL;
	for (size_t i = 0; i < sizeof(symbols) / sizeof(*symbols); i++) {
		int revision, rank;
		bool twin;

		if (!is_of(symbols[i].name, base, &revision, &twin) || (twin && !per_thread))
			continue;
		if (since(symbols[i].name) > version) {
			if (result == CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND)
				result = CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT;
			continue;
		}
		rank = revision * 2 + twin; /* the newest, and of those the per-thread one */
		if (rank > best) {
			best = rank;
			*ret_address = symbols[i].address;
			result = CU_GET_PROC_ADDRESS_SUCCESS;
		}
	}
	return result;
}

static CUresult get(const char *symbol, void **pfn, int version, cuuint64_t flags,
		    CUdriverProcAddressQueryResult *status)
{
	CUdriverProcAddressQueryResult result;

	if (status)
		*status = CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
	if (!symbol || !*symbol || !pfn || flags > 2)
		return CUDA_ERROR_INVALID_VALUE;
	*pfn = NULL;
	if (version > SIM_DRIVER_VERSION)
		version = SIM_DRIVER_VERSION;
	result = look_up(symbol, version, flags == 2, pfn);
	if (status)
		*status = result;
	return result == CU_GET_PROC_ADDRESS_SUCCESS ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}

CUresult cuGetProcAddress(const char *symbol, void **pfn, int version, cuuint64_t flags)
{
	CUresult r = sim_enter_slow("cuGetProcAddress", false);

	return r == CUDA_SUCCESS ? get(symbol, pfn, version, flags, NULL) : r;
}

CUresult cuGetProcAddress_v2(const char *symbol, void **pfn, int version, cuuint64_t flags,
			     CUdriverProcAddressQueryResult *status)
{
	CUresult r = sim_enter_slow("cuGetProcAddress_v2", false);

	return r == CUDA_SUCCESS ? get(symbol, pfn, version, flags, status) : r;
}
