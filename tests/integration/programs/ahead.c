/*
 * ahead WAY SECONDS: launches that may be queued ahead of a lease, and between them calls by which a program
 * would see that they are late. WAY says how the driver's functions are found: linked, dlsym, or proc
 * (cuGetProcAddress). Prints the rounds, and the longest that a launch took. Linked with the driver.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdint.h>
#include <stdlib.h>
#include <time.h>

#include "use.h"

#define LAUNCHES 40
#define WORDS 1024

typedef struct cu_module *cu_module;
typedef struct cu_function *cu_function;
typedef struct cu_stream *cu_stream;
typedef struct cu_event *cu_event;

#define FUNCTIONS(ROW) \
	ROW(cuInit, 2000, (unsigned flags)) \
	ROW(cuDevicePrimaryCtxRetain, 7000, (cu_context * ret, int device)) \
	ROW(cuCtxSetCurrent, 4000, (cu_context context)) \
	ROW(cuCtxSynchronize, 2000, (void)) \
	ROW(cuStreamCreate, 2000, (cu_stream * ret, unsigned flags)) \
	ROW(cuStreamSynchronize, 7000, (cu_stream stream)) \
	ROW(cuStreamQuery, 7000, (cu_stream stream)) \
	ROW(cuStreamWaitEvent, 7000, (cu_stream stream, cu_event event, unsigned flags)) \
	ROW(cuEventCreate, 2000, (cu_event * ret, unsigned flags)) \
	ROW(cuEventRecord, 7000, (cu_event event, cu_stream stream)) \
	ROW(cuEventQuery, 2000, (cu_event event)) \
	ROW(cuEventSynchronize, 2000, (cu_event event)) \
	ROW(cuEventElapsedTime, 2000, (float *ret, cu_event start, cu_event end)) \
	ROW(cuLaunchHostFunc, 10000, (cu_stream stream, void (*function)(void *), void *data)) \
	ROW(cuModuleLoadData, 2000, (cu_module * ret, const void *image)) \
	ROW(cuModuleGetFunction, 2000, (cu_function * ret, cu_module module, const char *name)) \
	ROW(cuMemAlloc_v2, 3020, (cu_pointer * ret, size_t bytes)) \
	ROW(cuMemFree_v2, 3020, (cu_pointer pointer)) \
	ROW(cuMemsetD32Async, 7000, \
	    (cu_pointer at, unsigned value, size_t count, cu_stream stream)) \
	ROW(cuMemcpyDtoDAsync_v2, 7000, \
	    (cu_pointer to, cu_pointer from, size_t bytes, cu_stream stream)) \
	ROW(cuMemcpyDtoH_v2, 7000, (void *to, cu_pointer from, size_t bytes)) \
	ROW(cuLaunchKernel, 7000, \
	    (cu_function f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, \
	     unsigned bz, unsigned shared, cu_stream stream, void **params, void **extra))

#define DECLARE(name, since, params) cu_result name params;
FUNCTIONS(DECLARE)
cu_result cuGetProcAddress(const char *name, void **ret, int version, uint64_t flags);

#define MEMBER(name, since, params) cu_result(*name) params;
static struct {
	FUNCTIONS(MEMBER)
} d;

static void check(cu_result result, const char *what)
{
	if (!result)
		return;
	fprintf(stderr, "ahead: %s: %d\n", what, result);
	exit(1);
}

#define DO(name, ...) check(d.name(__VA_ARGS__), #name)

static void *by_proc(const char *name, int since)
{
	char base[64];
	size_t length = strcspn(name, "_");
	void *found = NULL;

	memcpy(base, name, length);
	base[length] = '\0';
	/* The form of that version, which takes the legacy default stream: flag 1. */
	check(cuGetProcAddress(base, &found, since, 1), name);
	return found;
}

#define BY_LINK(name, since, params) d.name = name;
#define BY_DLSYM(name, since, params) *(void **)&d.name = dlsym(library, #name);
#define BY_PROC(name, since, params) *(void **)&d.name = by_proc(#name, since);

static void find_functions(const char *way)
{
	if (strcmp(way, "linked") == 0) {
		FUNCTIONS(BY_LINK)
	} else if (strcmp(way, "dlsym") == 0) {
		void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
		FUNCTIONS(BY_DLSYM)
	} else {
		check(cuInit(0), "cuInit");
		FUNCTIONS(BY_PROC)
	}
}

static double now_s(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static cu_function kernel;
static cu_stream stream, other;
static cu_event start, end;
static cu_pointer memory, copy;
static uint32_t words[WORDS];
static double longest_s;

static void launch(cu_stream where)
{
	double begin_s = now_s();

	DO(cuLaunchKernel, kernel, 132, 1, 1, 256, 1, 1, 0, where, NULL, NULL);
	if (now_s() - begin_s > longest_s)
		longest_s = now_s() - begin_s;
}

static void wrong(const char *what, unsigned round)
{
	fprintf(stderr, "ahead: round %u: %s\n", round, what);
	exit(1);
}

/* What was set, and copied behind kernels, is what is read by a copy that waits. */
static void look_at_memory(unsigned round)
{
	launch(stream);
	DO(cuMemsetD32Async, memory, round, WORDS, stream);
	launch(stream);
	DO(cuMemcpyDtoDAsync_v2, copy, memory, sizeof(words), stream);
	DO(cuMemcpyDtoH_v2, words, copy, sizeof(words));
	for (int i = 0; i < WORDS; i++)
		if (words[i] != round)
			wrong("the memory is not what was put there", round);
}

static volatile unsigned called;

static void call(void *data)
{
	called = (unsigned)(uintptr_t)data;
}

/* An event is not ready before what it stands behind has run, and then it is. */
static void look_at_events(unsigned round)
{
	float ms = 0;

	DO(cuEventRecord, start, stream);
	for (int i = 0; i < LAUNCHES; i++)
		launch(stream);
	DO(cuEventRecord, end, stream);
	DO(cuStreamWaitEvent, other, end, 0);
	launch(other);
	DO(cuLaunchHostFunc, other, call, (void *)(uintptr_t)round);
	cu_result ready = d.cuEventQuery(end);
	if (ready && ready != 600)
		wrong("an event's state", round);
	DO(cuStreamSynchronize, other);
	if (called != round)
		wrong("the host function was not called", round);
	if (d.cuEventQuery(end) || d.cuStreamQuery(other))
		wrong("waited for, and not ready", round);
	DO(cuEventElapsedTime, &ms, start, end);
	if (ms < 0.1 * LAUNCHES * 0.95)
		wrong("the kernels between two events took too little time", round);
}

int main(int argc, char **argv)
{
	double begin_s;
	unsigned round;
	cu_context context;
	cu_module module;

	if (argc != 3)
		return 2;
	find_functions(argv[1]);
	DO(cuInit, 0);
	DO(cuDevicePrimaryCtxRetain, &context, 0);
	DO(cuCtxSetCurrent, context);
	DO(cuModuleLoadData, &module, ".version 6.0\n.target sm_60\n.address_size 64\n");
	DO(cuModuleGetFunction, &kernel, module, "allot_sim_100us_132b");
	DO(cuStreamCreate, &stream, 1);
	DO(cuStreamCreate, &other, 1);
	DO(cuEventCreate, &start, 0);
	DO(cuEventCreate, &end, 0);
	DO(cuMemAlloc_v2, &memory, sizeof(words));
	DO(cuMemAlloc_v2, &copy, sizeof(words));
	begin_s = now_s();
	for (round = 1; now_s() - begin_s < atof(argv[2]); round++) {
		look_at_memory(round);
		look_at_events(round);
		DO(cuEventSynchronize, end);
	}
	DO(cuCtxSynchronize);
	DO(cuMemFree_v2, memory);
	printf("{\"rounds\": %u, \"longest_ms\": %.3f}\n", round - 1, 1e3 * longest_s);
	return 0;
}
