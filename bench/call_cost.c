/*
 * The extra cost, in a tenant, of calls other than launches: looking a function up, making and freeing memory,
 * making a context. Each is timed by turns through the address that dlsym gives a program, and through
 * the driver's own, found in libcuda's symbol table behind the interposer's back. Natively both would be
 * the same: it ends with 1.
 *
 *     call-cost [--rounds N]     1 unless said: as many times the pairs of each
 */
#include "by_turns.h"
#include "abi/driver_decisions.h"
#include "abi/driver_table.h"
#include "library/loader/elf_lookup.h"
#include "load/clock.h"
#include "load/driver.h"

#include <dlfcn.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define LOOK_UPS 64 /* a burst */
#define VERSION 12000
#define NAMES_MAX 1024
#define NAME_SIZE 64

/* X(member, exported symbol, parameters) */
#define CALLS(X) \
	X(get_proc, "cuGetProcAddress_v2", \
	  (const char *name, void **ret_pfn, int version, cuuint64_t flags, \
	   CUdriverProcAddressQueryResult *ret_status)) \
	X(mem_alloc, "cuMemAlloc_v2", (CUdeviceptr * ret_p, size_t bytes)) \
	X(mem_free, "cuMemFree_v2", (CUdeviceptr p)) \
	X(ctx_create, "cuCtxCreate_v2", (CUcontext * ret_ctx, unsigned flags, CUdevice dev)) \
	X(ctx_destroy, "cuCtxDestroy_v2", (CUcontext ctx)) \
	X(primary_retain, "cuDevicePrimaryCtxRetain", (CUcontext * ret_ctx, CUdevice dev)) \
	X(primary_release, "cuDevicePrimaryCtxRelease_v2", (CUdevice dev))

struct calls {
#define X(member, symbol, params) CUresult(*member) params;
	CALLS(X)
#undef X
};

static const struct {
	size_t offset;
	const char *symbol;
} rows[] = {
#define X(member, symbol, params) { offsetof(struct calls, member), symbol },
	CALLS(X)
#undef X
};

static struct calls each_way[2]; /* by is_native */

static void check(CUresult result, const char *what)
{
	if (result == CUDA_SUCCESS)
		return;
	fflush(stdout);
	fprintf(stderr, "call-cost: %s: %d\n", what, (int)result);
	exit(1);
}

static void find_calls(void)
{
	void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
	struct elf_object driver;
	if (library == NULL || !elf_find_object("libcuda.so.1", &driver)) {
		fprintf(stderr, "call-cost: no libcuda.so.1\n");
		exit(1);
	}
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		void *address[2] = { dlsym(library, rows[i].symbol),
				     elf_symbol(&driver, rows[i].symbol) };
		if (address[0] == address[1]) {
			fprintf(stderr, "call-cost: %s: nothing is interposed\n", rows[i].symbol);
			exit(1);
		}
		for (int way = 0; way < 2; way++) {
			check(address[way] ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND, rows[i].symbol);
			memcpy((char *)&each_way[way] + rows[i].offset, &address[way],
			       sizeof address[way]);
		}
	}
}

/* ---- the timed calls ---- */

/* Again and again the same. */
static double time_look_up(bool is_native, void *context)
{
	const struct calls *c = &each_way[is_native];
	const char *name = context;
	CUdriverProcAddressQueryResult status;
	void *pfn;

	uint64_t begin_ns = clock_now_ns();
	for (int i = 0; i < LOOK_UPS; i++)
		(void)c->get_proc(name, &pfn, VERSION, 0, &status);
	return (double)(clock_now_ns() - begin_ns) / LOOK_UPS;
}

/* The driver API's functions, as one asks for them: by base names. */
static char names[NAMES_MAX][NAME_SIZE];
static size_t names_count;

static void add_name(const char *symbol)
{
	const char *mark = strstr(symbol, "_");
	size_t length = mark ? (size_t)(mark - symbol) : strlen(symbol);

	for (size_t i = 0; i < names_count; i++)
		if (strncmp(names[i], symbol, length) == 0 && names[i][length] == '\0')
			return;
	if (names_count < NAMES_MAX && length < NAME_SIZE)
		memcpy(names[names_count++], symbol, length);
}

static void find_names(void)
{
#define ADD_HOOK(symbol, hook, params, args) add_name(#symbol);
#define ADD_WORK(symbol, streams, params, args, ...) add_name(#symbol);
#define ADD_PASSED(reason, base) add_name(#base);
	DRIVER_TABLE(ADD_HOOK, ADD_WORK)
	DRIVER_PASSED(ADD_PASSED)
}

/*
 * All of them, by so many runtimes one after the other, in a process that has asked for none before: what
 * driver and library remember is part of it, and what their memory costs when it is first touched.
 */
static double time_runtimes(bool is_native, void *context)
{
	const struct calls *c = &each_way[is_native];
	unsigned runtimes = *(const unsigned *)context;
	int ends[2], status;
	double ns = 0;

	check(pipe(ends) == 0 ? CUDA_SUCCESS : CUDA_ERROR_UNKNOWN, "pipe");
	pid_t child = fork();
	if (child == 0) {
		CUdriverProcAddressQueryResult found;
		void *pfn;
		uint64_t begin_ns = clock_now_ns();
		for (unsigned r = 0; r < runtimes; r++)
			for (size_t i = 0; i < names_count; i++)
				(void)c->get_proc(names[i], &pfn, VERSION, 0, &found);
		ns = (double)(clock_now_ns() - begin_ns);
		_exit(write(ends[1], &ns, sizeof ns) != sizeof ns);
	}
	close(ends[1]);
	bool is_told = child > 0 && read(ends[0], &ns, sizeof ns) == sizeof ns;
	close(ends[0]);
	check(is_told && waitpid(child, &status, 0) == child && !status ? CUDA_SUCCESS
									: CUDA_ERROR_UNKNOWN,
	      "a process that asks for functions");
	return ns;
}

struct size {
	size_t bytes;
	unsigned calls; /* a burst */
};

static double time_memory(bool is_native, void *context)
{
	const struct size *s = context;
	const struct calls *c = &each_way[is_native];

	uint64_t begin_ns = clock_now_ns();
	for (unsigned i = 0; i < s->calls; i++) {
		CUdeviceptr p;
		check(c->mem_alloc(&p, s->bytes), "cuMemAlloc");
		check(c->mem_free(p), "cuMemFree");
	}
	return (double)(clock_now_ns() - begin_ns) / s->calls;
}

static double time_context(bool is_native, void *context)
{
	const struct calls *c = &each_way[is_native];
	CUcontext made;

	uint64_t begin_ns = clock_now_ns();
	check(c->ctx_create(&made, 0, 0), "cuCtxCreate");
	check(c->ctx_destroy(made), "cuCtxDestroy");
	return (double)(clock_now_ns() - begin_ns);
}

/* The first to retain it makes it, the last to release it ends it. */
static double time_primary(bool is_native, void *context)
{
	const struct calls *c = &each_way[is_native];
	CUcontext made;

	uint64_t begin_ns = clock_now_ns();
	check(c->primary_retain(&made, 0), "cuDevicePrimaryCtxRetain");
	double ns = (double)(clock_now_ns() - begin_ns);
	check(c->primary_release(0), "cuDevicePrimaryCtxRelease");
	return ns;
}

/* ---- all of it ---- */

/* Before anything else in this process has asked for a function. */
static void measure_runtimes(unsigned rounds)
{
	char text[96];

	find_names();
	for (unsigned runtimes = 1; runtimes <= 3; runtimes += 2) {
		snprintf(text, sizeof text, "cuGetProcAddress, %zu functions, by %u runtime%s",
			 names_count, runtimes, runtimes > 1 ? "s" : "");
		by_turns(text, rounds * 200, time_runtimes, &runtimes);
	}
}

static void measure_look_ups(unsigned rounds)
{
	static struct {
		const char *what;
		char name[24];
	} asked[] = {
		{ "governed", "cuMemAlloc" },
		{ "passed", "cuStreamQuery" },
		{ "unknown", "cuNoSuchFunction" },
	};
	char text[96];

	for (size_t i = 0; i < sizeof asked / sizeof asked[0]; i++) {
		snprintf(text, sizeof text, "cuGetProcAddress, %s, again", asked[i].what);
		by_turns(text, rounds * 500, time_look_up, asked[i].name);
	}
}

/*
 * Small memory shares a chunk with others: alone, the driver makes and frees the chunk each time; with
 * others there, which are the tenant's as well, it costs least.
 */
static void measure_memory(unsigned rounds)
{
	static const struct {
		const char *what;
		struct size size;
		unsigned pairs;
		bool is_beside_others;
	} sizes[] = {
		{ "512 B", { 512, 64 }, 200, false },
		{ "512 B beside others", { 512, 64 }, 200, true },
		{ "64 KiB", { 64 << 10, 64 }, 200, false },
		{ "1 MiB", { 1 << 20, 16 }, 200, false },
		{ "2 MiB", { 2 << 20, 16 }, 200, false },
		{ "64 MiB", { 64 << 20, 4 }, 100, false },
		{ "1 GiB", { 1 << 30, 1 }, 100, false },
	};
	CUdeviceptr other = 0;
	char text[96];

	for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
		struct size size = sizes[i].size;
		if (sizes[i].is_beside_others)
			check(each_way[0].mem_alloc(&other, 512), "cuMemAlloc");
		snprintf(text, sizeof text, "cuMemAlloc + cuMemFree, %s", sizes[i].what);
		by_turns(text, rounds * sizes[i].pairs, time_memory, &size);
		if (sizes[i].is_beside_others)
			check(each_way[0].mem_free(other), "cuMemFree");
	}
}

int main(int argc, char **argv)
{
	unsigned rounds = 1;
	if (argc == 3 && strcmp(argv[1], "--rounds") == 0)
		rounds = (unsigned)strtoul(argv[2], NULL, 10);
	else if (argc != 1)
		rounds = 0;
	if (rounds < 1 || rounds > BY_TURNS_MAX_PAIRS / 500) {
		fprintf(stderr, "usage: call-cost [--rounds N], 1 to %d\n",
			BY_TURNS_MAX_PAIRS / 500);
		return 2;
	}

	struct driver driver;
	find_calls();
	by_turns_stay_on_processor();
	measure_runtimes(rounds);
	driver_open(&driver);
	measure_look_ups(rounds);
	measure_memory(rounds);
	by_turns("cuCtxCreate + cuCtxDestroy", rounds * 30, time_context, NULL);
	driver_close(&driver);
	by_turns("cuDevicePrimaryCtxRetain, first", rounds * 30, time_primary, NULL);
	return 0;
}
