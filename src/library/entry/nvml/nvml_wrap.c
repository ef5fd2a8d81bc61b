/*
 * The exported NVML functions, one for each row of abi/nvml_table.h. A function that is called before NVML is loaded, or that
 * this driver lacks, returns an error that says so.
 */
#include "library/entry/nvml/nvml_card.h"
#include "library/entry/nvml/nvml_hooks.h"
#include "library/loader/real.h"
#include "library/sys/sys.h"

#define UNWRAP(...) __VA_ARGS__

static nvmlReturn_t absent(void)
{
	return real_find_nvml() ? NVML_ERROR_FUNCTION_NOT_FOUND : NVML_ERROR_UNINITIALIZED;
}

/* Outside a tenant, calls the real function; in a tenant, runs the statements `...`. */
#define WRAP(symbol, params, args, ...) \
	ALLOT_EXPORT nvmlReturn_t symbol params; \
	ALLOT_EXPORT nvmlReturn_t symbol params \
	{ \
		if (!real_nvml.symbol && (!real_find_nvml() || !real_nvml.symbol)) \
			return absent(); \
		if (!nvml_is_governed()) \
			return real_nvml.symbol args; \
		__VA_ARGS__ \
	}

/*
 * A function without a device parameter first checks that NVML is initialized. A function with a device parameter calls
 * nvml_card_of() anyway, which fails if NVML is not initialized.
 */
#define WRAP_LOOK(symbol, hook, params, args) \
	WRAP(symbol, params, args, \
	     return nvml_is_started() ? nvml_##hook(real_nvml.symbol, UNWRAP args) \
				      : NVML_ERROR_UNINITIALIZED;)

#define OF_CARD(symbol, args, answer) \
	int card; \
	nvmlReturn_t result = nvml_card_of(device, &card); \
	return result == NVML_SUCCESS ? (answer) : NVML_REFUSED(result, real_nvml.symbol args);

#define WRAP_CARD(symbol, hook, params, args) \
	WRAP(symbol, params, args, \
	     OF_CARD(symbol, args, nvml_##hook(card, real_nvml.symbol, UNWRAP args)))

#define WRAP_NONE(symbol, params, args) \
	WRAP(symbol, params, args, OF_CARD(symbol, args, NVML_ERROR_NOT_SUPPORTED))

NVML_TABLE(WRAP_LOOK, WRAP_CARD, WRAP_NONE)
