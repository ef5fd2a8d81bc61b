/* Each LOOK and CARD row of abi/nvml_table.h names its hook. Called only in a process that belongs to a tenant. */
#pragma once

#include "abi/nvml_table.h"

/* Takes the parentheses off a list of parameters or arguments. */
#define UNWRAP(...) __VA_ARGS__

/*
 * Begin the definition of a hook. `real_function` is the hook's name for NVML's function, which has the same `params`. The
 * hook of a CARD row also has the parameter `card`.
 */
#define DEFINE_LOOK_HOOK(hook, real_function, params) \
	nvmlReturn_t hook(nvmlReturn_t(*real_function) params, UNWRAP params)
#define DEFINE_CARD_HOOK(hook, real_function, params) \
	nvmlReturn_t hook(int card, nvmlReturn_t(*real_function) params, UNWRAP params)

#define DECLARE_LOOK_HOOK(symbol, hook, params, args) \
	DEFINE_LOOK_HOOK(nvml_##hook, real_function, params);
#define DECLARE_CARD_HOOK(symbol, hook, params, args) \
	DEFINE_CARD_HOOK(nvml_##hook, real_function, params);
#define DECLARE_NO_HOOK(symbol, params, args)

NVML_TABLE(DECLARE_LOOK_HOOK, DECLARE_CARD_HOOK, DECLARE_NO_HOOK)
