/*
 * Finds functions by base name and version, as driver 580 does. A base name has several forms, such as cuMemAlloc and
 * cuMemAlloc_v2. abi/driver_versions.h has the rule for choosing a form, and the version that added each form. It has no row
 * for a function of a newer CUDA, so only dlsym finds that function.
 *
 * symbols[] names every function of this library, so a function that is declared but not defined fails to link. Its addresses
 * are those of this library, even if a library loaded before it exports the same names.
 */
#include <assert.h>
#include <pthread.h>
#include <stdint.h>
#include <string.h>

#include "abi/driver_versions.h"
#include "sim/cuda/sim.h"

static_assert(SIM_DRIVER_VERSION == DRIVER_VERSIONS_NEWEST, "the driver's version is the table's");

struct symbol {
	const char *name;
	void *address;
};

#define ROW_HOOK(symbol, hook, params, args) { #symbol, (void *)symbol },
#define ROW_WORK(symbol, streams, params, args, work) { #symbol, (void *)symbol },
#define ROW(symbol, params) { #symbol, (void *)symbol },
static const struct symbol symbols[] = { DRIVER_TABLE(ROW_HOOK, ROW_WORK) DRIVER_CALLS(ROW)
						 SIM_TABLE(ROW) };

struct form {
	const char *name;
	int since;
	void *address;
	struct form *older; /* next older form of the same base name, with the same suffix */
};

#define ROW_VERSION(version, symbol) { .name = #symbol, .since = version },
static struct form forms[] = { DRIVER_VERSIONS(ROW_VERSION)
				       ROW_VERSION(SIM_FUTURE_VERSION, cuMemAlloc_v9) };

#define COUNT(array) (sizeof(array) / sizeof(*(array)))
#define SLOTS 2048 /* a power of two, well above the number of rows */
static_assert(COUNT(symbols) < SLOTS && COUNT(forms) < SLOTS, "an empty slot ends each search");

/* A base name with its forms, newest first. The names of `twins` end in _ptds or _ptsz, those of `plain` do not. */
struct base {
	const char *name; /* NULL for an empty slot */
	size_t length;
	struct form *plain, *twins;
};

static const struct symbol *symbol_slots[SLOTS];
static struct base bases[SLOTS];
static pthread_once_t bases_once = PTHREAD_ONCE_INIT;

static uint32_t hash_of(const char *name, size_t length)
{
	uint32_t hash = 5381;

	for (size_t i = 0; i < length; i++)
		hash = hash * 33 + (unsigned char)name[i];
	return hash ^ hash >> 16;
}

static const struct symbol **slot_of_symbol(const char *name)
{
	for (uint32_t i = hash_of(name, strlen(name));; i++) {
		const struct symbol **slot = &symbol_slots[i % SLOTS];

		if (!*slot || !strcmp((*slot)->name, name))
			return slot;
	}
}

static struct base *slot_of_base(const char *name, size_t length)
{
	for (uint32_t i = hash_of(name, length);; i++) {
		struct base *b = &bases[i % SLOTS];

		if (!b->name || (b->length == length && !memcmp(b->name, name, length)))
			return b;
	}
}

static void enter(struct form *f)
{
	const struct symbol *own = *slot_of_symbol(f->name);
	size_t length = strcspn(f->name, "_");
	const char *suffix = strstr(f->name, "_pt");
	struct base *b = slot_of_base(f->name, length);
	struct form **at = suffix ? &b->twins : &b->plain;

	if (!own)
		return;
	f->address = own->address;
	b->name = f->name;
	b->length = length;
	while (*at && (*at)->since > f->since)
		at = &(*at)->older;
	f->older = *at;
	*at = f;
}

static void bases_make(void)
{
	for (size_t i = 0; i < COUNT(symbols); i++)
		*slot_of_symbol(symbols[i].name) = &symbols[i];
	for (size_t i = 0; i < COUNT(forms); i++)
		enter(&forms[i]);
}

/* Fills the tables at load, not at the first lookup, because tests measure the time of a lookup. */
__attribute__((constructor)) static void at_load(void)
{
	pthread_once(&bases_once, bases_make);
}

static CUdriverProcAddressQueryResult look_up(const char *name, int version, bool per_thread,
					      void **ret_address)
{
	const struct base *b = slot_of_base(name, strlen(name));
	const struct form *f = per_thread && b->twins ? b->twins : b->plain;

	*ret_address = NULL;
	if (!b->name)
		return CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
	while (f && f->since > version)
		f = f->older;
	if (!f)
		return CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT;
	*ret_address = f->address;
	return CU_GET_PROC_ADDRESS_SUCCESS;
}

/* If the arguments are invalid, *pfn and *ret_status stay unchanged. */
static CUresult get(const char *symbol, void **pfn, int version, cuuint64_t flags,
		    CUdriverProcAddressQueryResult *ret_status)
{
	SIM_FAIL_IF(!symbol || !*symbol || !pfn || flags > 2 ||
			    (version > SIM_DRIVER_VERSION && version > sim_driver_version()),
		    CUDA_ERROR_INVALID_VALUE);
	pthread_once(&bases_once, bases_make);
	*ret_status = look_up(symbol, version, flags == 2, pfn);
	return CUDA_SUCCESS;
}

CUresult cuGetProcAddress(const char *symbol, void **pfn, int version, cuuint64_t flags)
{
	CUdriverProcAddressQueryResult status;
	CUresult r = sim_enter_slow("cuGetProcAddress", false);
	void *found;

	if (r == CUDA_SUCCESS)
		r = get(symbol, pfn ? &found : NULL, version, flags, &status);
	if (r != CUDA_SUCCESS)
		return r;
	if (!found)
		return CUDA_ERROR_NOT_FOUND; /* *pfn stays unchanged */
	*pfn = found;
	return CUDA_SUCCESS;
}

CUresult cuGetProcAddress_v2(const char *symbol, void **pfn, int version, cuuint64_t flags,
			     CUdriverProcAddressQueryResult *status)
{
	CUdriverProcAddressQueryResult ignored;
	CUresult r = sim_enter_slow("cuGetProcAddress_v2", false);

	return r == CUDA_SUCCESS ? get(symbol, pfn, version, flags, status ? status : &ignored) : r;
}
