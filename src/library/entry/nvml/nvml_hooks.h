/* Each LOOK and CARD row of abi/nvml_table.h names its hook. Called only in a process that belongs to a tenant. */
#pragma once

#include "abi/nvml_table.h"

#define NVML_HOOK_REST(...) __VA_ARGS__
#define DECLARE_LOOK_HOOK(symbol, hook, params, args) \
	nvmlReturn_t nvml_##hook(nvmlReturn_t(*real_function) params, NVML_HOOK_REST params);
#define DECLARE_CARD_HOOK(symbol, hook, params, args) \
	nvmlReturn_t nvml_##hook(int card, nvmlReturn_t(*real_function) params, \
				 NVML_HOOK_REST params);
#define DECLARE_NO_HOOK(symbol, params, args)

NVML_TABLE(DECLARE_LOOK_HOOK, DECLARE_CARD_HOOK, DECLARE_NO_HOOK)
