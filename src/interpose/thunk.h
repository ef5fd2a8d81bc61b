/*
 * What stands before the driver's functions that we pass: a few instructions each, that look at one flag.
 * While nothing waits in our own queue (ahead.h) they jump on, all registers and the stack as they were;
 * else ahead_meet() is asked first. Functions that are quiet (driver_quiet.h) are jumped to in any case.
 *
 * They are rows of real.c as the hooks are, so that each way in ends at them: linking, dlsym and
 * cuGetProcAddress. Which there are, DRIVER_THUNKS in thunks.h says, made at build time. Those of quiet functions
 * are no rows: dlsym and cuGetProcAddress hand out the driver's own. They are there for a program that looks them
 * up in this library, as a profiler makes one do that answers dlopen("libcuda.so.1") with the object that has cuInit.
 */
#ifndef ALLOT_INTERPOSE_THUNK_H
#define ALLOT_INTERPOSE_THUNK_H

#include "interpose/sys.h"
#include "interpose/thunks.h"

#define THUNK_NUMBER(symbol, kind, number) THUNK_##symbol = number,
enum { DRIVER_THUNKS(THUNK_NUMBER) THUNK_COUNT };
#define THUNK_QUIET_NUMBER(symbol, kind, number) THUNK_AFTER_##symbol = number,
enum { DRIVER_QUIET_THUNKS(THUNK_QUIET_NUMBER) THUNK_ALL };

/* The driver's own, by number; NULL: it has no such function, or was not found yet. */
SYS_DATA void *allot_thunk_real[THUNK_ALL];

/* The driver was loaded anew: quiet functions are looked up again, each at its next call. */
void thunk_forget_quiet(void);

/* As declared by real.c for its rows, and never called from here: what they take is the driver's matter. */
#define THUNK_DECLARE(symbol, kind, number) void symbol(void);

#endif
