#include "library/loader/unknown.h"

#include "abi/cuda_abi.h"
#include "library/sys/config.h"
#include "library/sys/log.h"
#include "library/sys/sys.h"

#define NOTES 256 /* most hidden functions in one process; others are allowed */

static const void *_Atomic noted[NOTES];

/* Stands in for every hidden function. It takes any arguments: on x86-64 and aarch64 the caller removes them. */
static CUresult absent_entry(void)
{
	return CUDA_ERROR_NOT_FOUND;
}

bool unknown_is_refused(const char *name)
{
	bool is_refused = *config_socket() && !config_passes_unknown();

	if (*config_socket())
		log_debug("%s: this version of allot does not know this function of the driver: %s",
			  name,
			  is_refused ? "hidden from the program (ALLOT_UNKNOWN=pass allows it)"
				     : "allowed");
	return is_refused;
}

void *unknown_note(const char *name, const void *address)
{
	if (unknown_stand_in(address))
		return (void *)absent_entry;
	if (!unknown_is_refused(name))
		return NULL;
	for (size_t i = 0; i < NOTES; i++) {
		const void *empty = NULL;
		if (atomic_compare_exchange_strong(&noted[i], &empty, address) || empty == address)
			return (void *)absent_entry;
	}
	log_debug("%s: allowed, because the table of hidden functions is full", name);
	return NULL;
}

void *unknown_stand_in(const void *address)
{
	for (size_t i = 0; i < NOTES; i++) {
		const void *at = atomic_load_explicit(&noted[i], memory_order_relaxed);
		if (!at)
			return NULL;
		if (at == address)
			return (void *)absent_entry;
	}
	return NULL;
}
