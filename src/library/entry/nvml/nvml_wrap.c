/* Exports a function for each row of abi/nvml_table.h. It returns an error if NVML is not loaded, or lacks the function. */
#include "library/entry/nvml/nvml_card.h"
#include "library/entry/nvml/nvml_hooks.h"
#include "library/loader/real.h"
#include "library/sys/sys.h"

static nvmlReturn_t absent(void)
{
	return real_find_nvml() ? NVML_ERROR_FUNCTION_NOT_FOUND : NVML_ERROR_UNINITIALIZED;
}

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

/* Without a device parameter, checks first that NVML is initialized. For all others, nvml_card_of() fails if it is not. */
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
