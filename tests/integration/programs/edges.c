/*
 * edges early|joined|null|late: calls every function that the library hooks at the edges of what is right, and prints
 * how each call ended, a line each: "SYMBOL CASE RESULT", or "SYMBOL CASE signal N". early: before the start of the
 * driver, or of NVML. joined: before that of the driver, after that of NVML. null: each pointer NULL, then all of them.
 * late: after NVML's shutdown.
 *
 * Every function has a process of its own, and another one once it crashed.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "abi/driver_table.h"
#include "abi/nvml_table.h"

/* ---- values of arguments ---- */

enum kind { NUMBER, POINTER, CONTEXT, STREAM, POOL, DEVICE, OTHER_HANDLE };

static struct {
	CUcontext context;
	CUstream stream;
	CUmemoryPool pool;
	nvmlDevice_t device;
} have;

static unsigned null_mask; /* which arguments are NULL, of those that point somewhere */
static unsigned pointers;  /* those of the last function that do */
static bool counts_one;    /* lists have a member */
static _Alignas(64) char memory[16][65536];

static unsigned long number_for(const char *name)
{
	if (strstr(name, "element"))
		return 4;
	if (strstr(name, "count") || !strcmp(name, "n"))
		return counts_one;
	if (strstr(name, "bytes") || strstr(name, "width") || strstr(name, "height"))
		return 64;
	return 0;
}

static unsigned long value_for(int i, const char *name, enum kind kind)
{
	switch (kind) {
	case NUMBER: return number_for(name);
	case CONTEXT: return (unsigned long)have.context;
	case STREAM: return (unsigned long)have.stream;
	case POOL: return (unsigned long)have.pool;
	case DEVICE: return (unsigned long)have.device;
	case OTHER_HANDLE: return 0;
	case POINTER: break;
	}
	pointers |= 1U << i;
	return null_mask >> i & 1 ? 0 : (unsigned long)memory[i];
}

#define KIND(arg) \
	_Generic((arg), CUcontext \
		 : CONTEXT, CUstream \
		 : STREAM, CUmemoryPool \
		 : POOL, nvmlDevice_t \
		 : DEVICE, CUmodule \
		 : OTHER_HANDLE, CUfunction \
		 : OTHER_HANDLE, CUlibrary \
		 : OTHER_HANDLE, CUkernel \
		 : OTHER_HANDLE, CUarray \
		 : OTHER_HANDLE, CUmipmappedArray \
		 : OTHER_HANDLE, CUevent \
		 : OTHER_HANDLE, CUgraph \
		 : OTHER_HANDLE, CUgraphNode \
		 : OTHER_HANDLE, CUgraphExec \
		 : OTHER_HANDLE, CUgreenCtx \
		 : OTHER_HANDLE, CUdevResourceDesc \
		 : OTHER_HANDLE, CUgraphRecaptureCallback \
		 : OTHER_HANDLE, nvmlUnit_t \
		 : OTHER_HANDLE, nvmlGpmSample_t \
		 : OTHER_HANDLE, default \
		 : __builtin_classify_type(arg) == 5 ? POINTER : NUMBER)
#define SET(i, arg) \
	{ \
		unsigned long set_to = value_for(i, #arg, KIND(arg)); \
		memset(&(arg), 0, sizeof(arg)); \
		memcpy(&(arg), &set_to, \
		       sizeof(arg) < sizeof(set_to) ? sizeof(arg) : sizeof(set_to)); \
	}
#define SET1(i, a) SET(i, a)
#define SET2(i, a, ...) SET(i, a) SET1(i + 1, __VA_ARGS__)
#define SET3(i, a, ...) SET(i, a) SET2(i + 1, __VA_ARGS__)
#define SET4(i, a, ...) SET(i, a) SET3(i + 1, __VA_ARGS__)
#define SET5(i, a, ...) SET(i, a) SET4(i + 1, __VA_ARGS__)
#define SET6(i, a, ...) SET(i, a) SET5(i + 1, __VA_ARGS__)
#define SET7(i, a, ...) SET(i, a) SET6(i + 1, __VA_ARGS__)
#define SET8(i, a, ...) SET(i, a) SET7(i + 1, __VA_ARGS__)
#define SET9(i, a, ...) SET(i, a) SET8(i + 1, __VA_ARGS__)
#define SET10(i, a, ...) SET(i, a) SET9(i + 1, __VA_ARGS__)
#define SET11(i, a, ...) SET(i, a) SET10(i + 1, __VA_ARGS__)
#define SET12(i, a, ...) SET(i, a) SET11(i + 1, __VA_ARGS__)
#define PICK(_1, _2, _3, _4, _5, _6, _7, _8, _9, _10, _11, _12, set, ...) set
#define SET_ALL(...) \
	__VA_OPT__(PICK(__VA_ARGS__, SET12, SET11, SET10, SET9, SET8, SET7, SET6, SET5, SET4, \
			SET3, SET2, SET1)(0, __VA_ARGS__))

/* ---- the functions ---- */

static void *address; /* of the function under test */

/* The parameters are but variables of the right types: it is called without any. */
#define CALL(symbol, params, args) \
	static int call_##symbol params \
	{ \
		SET_ALL args return (int)((__typeof__(call_##symbol) *)address)args; \
	}
#define CALL_HOOK(symbol, hook, params, args) CALL(symbol, params, args)
#define CALL_WORK(symbol, streams, params, args, ...) CALL(symbol, params, args)
DRIVER_TABLE(CALL_HOOK, CALL_WORK)
NVML_TABLE(CALL_HOOK, CALL_HOOK, CALL)

struct function {
	const char *name;
	int (*volatile call)(void);
};

#define ROW(symbol, ...) { #symbol, (int (*)(void))(void *)call_##symbol },
static const struct function driver[] = { DRIVER_TABLE(ROW, ROW) };
static const struct function nvml[] = { NVML_TABLE(ROW, ROW, ROW) };

static void *libcuda, *libnvml;

static int ask(const char *name, ...)
{
	int (*f)(unsigned long, unsigned long, unsigned long) = NULL;
	unsigned long argument[3];
	__builtin_va_list list;

	*(void **)&f = dlsym(name[0] == 'c' ? libcuda : libnvml, name);
	__builtin_va_start(list, name);
	for (int i = 0; i < 3; i++)
		argument[i] = __builtin_va_arg(list, unsigned long);
	__builtin_va_end(list);
	return f ? f(argument[0], argument[1], argument[2]) : -1;
}

static void need(const char *name, int result)
{
	if (!result)
		return;
	printf("%s failed with %d\n", name, result);
	exit(9);
}

static void start_driver(void)
{
	need("cuInit", ask("cuInit", 0UL, 0UL, 0UL));
	need("cuDevicePrimaryCtxRetain", ask("cuDevicePrimaryCtxRetain", &have.context, 0UL, 0UL));
	need("cuCtxSetCurrent", ask("cuCtxSetCurrent", have.context, 0UL, 0UL));
	need("cuStreamCreate", ask("cuStreamCreate", &have.stream, 1UL, 0UL));
	need("cuDeviceGetDefaultMemPool", ask("cuDeviceGetDefaultMemPool", &have.pool, 0UL, 0UL));
}

static void start_nvml(void)
{
	need("nvmlInit_v2", ask("nvmlInit_v2", 0UL, 0UL, 0UL));
	need("nvmlDeviceGetHandleByIndex_v2",
	     ask("nvmlDeviceGetHandleByIndex_v2", 0UL, &have.device, 0UL));
}

/* ---- the cases ---- */

/* Cases are counted: with two values of counts, no pointer NULL, each one, all. */
#define MASKS 14
static struct progress {
	int next;          /* case */
	unsigned pointers; /* known after the first call; 0: not yet */
	bool is_over;
} * progress;

static unsigned mask_of(int number)
{
	return number == 0 ? 0 : number == MASKS - 1 ? ~0U : 1U << (number - 1);
}

static bool is_of_mode(const char *mode, int number)
{
	int mask = number % MASKS;

	if (!strcmp(mode, "null"))
		return mask != 0;
	/* Nothing is written yet, so no list has a member. */
	return number < MASKS && (mask == 0 || mask == MASKS - 1);
}

static void run_cases(const struct function *f, const char *mode, bool is_driver)
{
	alarm(30);
	if (!strcmp(mode, "joined") || (!strcmp(mode, "null") && !is_driver) ||
	    !strcmp(mode, "late"))
		start_nvml();
	if (!strcmp(mode, "null") && is_driver)
		start_driver();
	if (!strcmp(mode, "late"))
		need("nvmlShutdown", ask("nvmlShutdown", 0UL, 0UL, 0UL));
	address = dlsym(is_driver ? libcuda : libnvml, f->name);
	for (int i = progress->next; address && i < 2 * MASKS; i++) {
		progress->next = i;
		if (!is_of_mode(mode, i))
			continue;
		null_mask = mask_of(i % MASKS);
		if (null_mask && progress->pointers && !(null_mask & progress->pointers))
			continue;
		counts_one = i >= MASKS;
		pointers = 0;
		memset(memory, 0, sizeof(memory));
		int result = f->call();
		progress->pointers = pointers;
		if (null_mask == ~0U || !null_mask || null_mask & pointers)
			printf("%s %d %d\n", f->name, i, result);
		fflush(stdout);
	}
	progress->is_over = true;
}

static void run(const struct function *f, const char *mode, bool is_driver)
{
	int status = 0;

	*progress = (struct progress){ 0 };
	do {
		pid_t pid = fork();
		if (pid == 0) {
			run_cases(f, mode, is_driver);
			_exit(0);
		}
		waitpid(pid, &status, 0);
		if (WIFSIGNALED(status))
			printf("%s %d signal %d\n", f->name, progress->next++, WTERMSIG(status));
		else if (WEXITSTATUS(status))
			exit(WEXITSTATUS(status));
		fflush(stdout);
	} while (!progress->is_over);
}

int main(int argc, char **argv)
{
	const char *mode = argc > 1 ? argv[1] : "";

	setvbuf(stdout, NULL, _IOLBF, 0);
	progress = mmap(NULL, sizeof(*progress), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
			-1, 0);
	libcuda = dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL);
	libnvml = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_GLOBAL);
	if (!libcuda || !libnvml)
		return 8;
	for (size_t i = 0; i < sizeof(driver) / sizeof(driver[0]) && strcmp(mode, "late"); i++)
		run(&driver[i], mode, true);
	for (size_t i = 0; i < sizeof(nvml) / sizeof(nvml[0]) && strcmp(mode, "joined"); i++)
		run(&nvml[i], mode, false);
	return 0;
}
