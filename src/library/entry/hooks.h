/* Each HOOK row of driver_table.h names its hook, which gets the real function and the call's arguments. */
#pragma once

#include "abi/driver_table.h"

#define HOOK_REST(...) __VA_ARGS__
#define DECLARE_HOOK_FUNCTION(symbol, hook, params, args) \
	CUresult hook_##hook(CUresult(*real_function) params, HOOK_REST params);

DRIVER_TABLE_HOOKS(DECLARE_HOOK_FUNCTION)

/* Call in a forked child: forgets the devices' primary contexts (hook_context.c). */
void hook_context_reset(void);
