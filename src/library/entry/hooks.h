/* Each HOOK row of driver_table.h names its hook, which gets the real function and the call's arguments. */
#pragma once

#include "abi/driver_table.h"

/* Takes the parentheses off a list of parameters or arguments. */
#define UNWRAP(...) __VA_ARGS__

/* Begins the definition of a hook. `real_function` is the hook's name for the driver's function, which has the same `params`. */
#define DEFINE_HOOK(hook, real_function, params) \
	CUresult hook(CUresult(*real_function) params, UNWRAP params)

/* As DEFINE_HOOK(), for a hook whose body is repeated by WITH_ROOM() (swap_room.h). `args` are the names of the `params`. */
#define DEFINE_HOOK_WITH_ROOM(hook, real_function, params, args) \
	static CUresult try_##hook(CUresult(*real_function) params, UNWRAP params); \
	DEFINE_HOOK(hook, real_function, params) \
	{ \
		return WITH_ROOM(try_##hook(real_function, UNWRAP args)); \
	} \
	static CUresult try_##hook(CUresult(*real_function) params, UNWRAP params)

#define DECLARE_HOOK(symbol, hook, params, args) DEFINE_HOOK(hook_##hook, real_function, params);

DRIVER_TABLE_HOOKS(DECLARE_HOOK)

/* Call in a forked child: forgets the devices' primary contexts (hook_context.c). */
void hook_context_reset(void);
