/*
 * The program that test_library runs under the library. It does one thing and prints the results, one a line. Built twice:
 * linked with the driver (PROBE_LINKED) and without.
 */
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "abi/cuda_abi.h"
#include "abi/nvml_abi.h"

typedef CUresult init_function(unsigned int);
typedef CUresult alloc_function(CUdeviceptr *, size_t);
typedef CUresult free_function(CUdeviceptr);
typedef CUresult info_function(size_t *, size_t *);
typedef CUresult retain_function(CUcontext *, CUdevice);
typedef CUresult current_function(CUcontext);
typedef CUresult release_function(CUdevice);
typedef CUresult look_up_function(const char *, void **, int, cuuint64_t,
				  CUdriverProcAddressQueryResult *);
typedef nvmlReturn_t nvml_info_function(nvmlDevice_t, nvmlMemory_t *);

/* The file name of the object that holds the address. */
static const char *owner(const void *address)
{
	Dl_info info;

	if (!address)
		return "nothing";
	if (!dladdr(address, &info) || !info.dli_fname)
		return "unknown";
	const char *slash = strrchr(info.dli_fname, '/');
	return slash ? slash + 1 : info.dli_fname;
}

static void *driver;

static void *symbol(const char *name)
{
	if (!driver)
		driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
	return driver ? dlsym(driver, name) : NULL;
}

#define CALL(type, name, ...) ((type *)symbol(name))(__VA_ARGS__)

/* ---- how symbols are found ---- */

#ifdef PROBE_LINKED
init_function cuInit;
alloc_function cuMemAlloc_v2;

static int linked(void)
{
	CUdeviceptr ptr;

	printf("cuMemAlloc_v2 %s\n", owner((void *)cuMemAlloc_v2));
	printf("cuInit %d\n", cuInit(0));
	printf("cuMemAlloc_v2 without a context %d\n", cuMemAlloc_v2(&ptr, 1));
	printf("RTLD_DEFAULT %s\n", owner(dlsym(RTLD_DEFAULT, "cuMemAlloc_v2")));
	printf("RTLD_NEXT %s\n", owner(dlsym(RTLD_NEXT, "cuMemAlloc_v2")));
	return 0;
}
#endif

static int look_up(void)
{
	printf("RTLD_DEFAULT before %s\n", owner(dlsym(RTLD_DEFAULT, "cuInit")));
	printf("nvml before %s\n", owner(dlsym(RTLD_DEFAULT, "nvmlDeviceGetMemoryInfo")));
	printf("cuMemAlloc_v2 %s\n", owner(symbol("cuMemAlloc_v2")));
	printf("cuDeviceGetCount %s\n", owner(symbol("cuDeviceGetCount")));
	printf("absent from this driver %s\n", owner(symbol("cuArrayCreate_v2")));
	printf("unknown %s\n", owner(symbol("cuNoSuchThing")));
	printf("error %s\n", dlerror() ? "said" : "silent");
	void *global = dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL);
	printf("RTLD_DEFAULT after %s\n", owner(dlsym(RTLD_DEFAULT, "cuMemAlloc_v2")));
	printf("RTLD_DEFAULT not hooked %s\n", owner(dlsym(RTLD_DEFAULT, "cuDeviceGetCount")));
	dlclose(global);
	return 0;
}

static int proc_address(void)
{
	CUdriverProcAddressQueryResult status;
	void *pfn = NULL;
	CUresult result;

	result = CALL(look_up_function, "cuGetProcAddress_v2", "cuMemAlloc", &pfn, 12000, 0,
		      &status);
	printf("cuMemAlloc %d %s\n", result, owner(pfn));
	result = CALL(look_up_function, "cuGetProcAddress_v2", "cuDeviceGetCount", &pfn, 12000, 0,
		      &status);
	printf("cuDeviceGetCount %d %s\n", result, owner(pfn));
	result = CALL(look_up_function, "cuGetProcAddress_v2", "cuNone", &pfn, 12000, 0, &status);
	printf("cuNone %d %s %d\n", result, owner(pfn), status);
	result = CALL(look_up_function, "cuGetProcAddress_v2", "cuGetProcAddress", &pfn, 12000, 0,
		      &status);
	printf("cuGetProcAddress %d %s\n", result, owner(pfn));
	return 0;
}

/* A library that looks up the driver's function behind its own, as other interposers do: see other.c. */
static int next(void)
{
	alloc_function *through = (alloc_function *)dlsym(RTLD_DEFAULT, "other_next_alloc");

	printf("RTLD_NEXT of the other %s\n",
	       through ? owner(((void *(*)(void))(void *)through)()) : "no other");
	return 0;
}

static uintptr_t base_of(const void *address)
{
	Dl_info info;

	return dladdr(address, &info) ? (uintptr_t)info.dli_fbase : 0;
}

/* Programs that check for a driver, unload it, and load it again at another address. */
static int reload(void)
{
	size_t free_bytes, total_bytes;

	printf("cuInit %d\n", CALL(init_function, "cuInit", 0));
	void *real_function = dlsym(driver, "cuDeviceGetCount");
	uintptr_t before = base_of(real_function);
	dlclose(driver);
	driver = NULL;
	if (mmap((void *)before, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE,
		 -1, 0) == MAP_FAILED)
		puts("still there");
	printf("cuInit %d\n", CALL(init_function, "cuInit", 0));
	printf("look-up %s\n", owner(symbol("cuMemGetInfo_v2")));
	printf("cuMemGetInfo_v2 %d\n",
	       CALL(info_function, "cuMemGetInfo_v2", &free_bytes, &total_bytes));
	printf("moved %d\n", base_of(dlsym(driver, "cuDeviceGetCount")) != before);
	return 0;
}

/* A form of a governed name that only the driver knows. */
static int unknown(void)
{
	CUdriverProcAddressQueryResult status = CU_GET_PROC_ADDRESS_SUCCESS;
	void *address = symbol("cuMemFree_v9");

	printf("dlsym %s %d\n", owner(address), (int)((free_function *)address)(0));
	CUresult result = CALL(look_up_function, "cuGetProcAddress_v2", "cuMemFree", &address,
			       14000, 0, &status);
	printf("cuGetProcAddress %d %s %d\n", result, owner(address), status);
	return 0;
}

/* ---- as a tenant's process ---- */

static void wait_for_input(void)
{
	char c;

	fflush(stdout);
	while (read(STDIN_FILENO, &c, 1) < 0 && errno == EINTR)
		;
}

static CUresult begin(void)
{
	CUcontext context = NULL;
	CUresult result = CALL(init_function, "cuInit", 0);

	printf("cuInit %d\n", result);
	if (result == CUDA_SUCCESS) {
		result = CALL(retain_function, "cuDevicePrimaryCtxRetain", &context, 0);
		printf("cuDevicePrimaryCtxRetain %d\n", result);
		CALL(current_function, "cuCtxSetCurrent", context);
	}
	return result;
}

static void print_info(void)
{
	size_t free_bytes = 0, total_bytes = 0;

	CUresult result = CALL(info_function, "cuMemGetInfo_v2", &free_bytes, &total_bytes);
	printf("cuMemGetInfo %d %zu %zu\n", result, free_bytes, total_bytes);
}

#define MIB (1ULL << 20)

/* Holds 100 MiB until it reads a byte; frees the memory; reads another byte. */
static int hold(void)
{
	CUdeviceptr ptr = 0, more = 0;

	if (begin() != CUDA_SUCCESS)
		return 0;
	printf("alloc %d\n", CALL(alloc_function, "cuMemAlloc_v2", &ptr, 100 * MIB));
	printf("too much %d\n", CALL(alloc_function, "cuMemAlloc_v2", &more, 1000 * MIB));
	print_info();
	wait_for_input();
	printf("free %d\n", CALL(free_function, "cuMemFree_v2", ptr));
	wait_for_input();
	printf("release %d\n", CALL(release_function, "cuDevicePrimaryCtxRelease_v2", 0));
	print_info();
	return 0;
}

static void print_nvml(const char *who)
{
	void *nvml = dlopen("libnvidia-ml.so.1", RTLD_NOW);
	nvmlMemory_t memory = { 0 };
	nvmlReturn_t result = ((nvml_info_function *)dlsym(nvml, "nvmlDeviceGetMemoryInfo"))(
		(nvmlDevice_t)1, &memory);

	printf("%s %d %llu %llu\n", who, result, memory.total, memory.used);
	fflush(stdout);
}

/* The parent only asks NVML, so its children may use the driver. */
static int forked(void)
{
	print_nvml("parent");
	for (int i = 0; i < 2; i++) {
		pid_t child = fork();
		if (child == 0) {
			hold();
			fflush(stdout);
			_exit(0);
		}
		waitpid(child, NULL, 0);
	}
	print_nvml("parent again");
	return 0;
}

static int exec_again(char **argv)
{
	begin();
	fflush(stdout);
	argv[1] = (char *)(uintptr_t) "hold";
	execv("/proc/self/exe", argv);
	return 1;
}

static unsigned open_descriptors(void)
{
	DIR *dir = opendir("/proc/self/fd");
	unsigned count = 0;

	while (readdir(dir))
		count++;
	closedir(dir);
	return count;
}

/* The blocked signals of a thread of ours, as /proc shows them. */
static unsigned long long blocked_signals(const char *name)
{
	DIR *dir = opendir("/proc/self/task");
	unsigned long long blocked = 1;

	for (struct dirent *e = readdir(dir); e; e = readdir(dir)) {
		char path[300], line[100];
		unsigned long long mask = 0;
		int is_it = 0;
		snprintf(path, sizeof(path), "/proc/self/task/%s/status", e->d_name);
		FILE *f = fopen(path, "r");
		while (f && fgets(line, sizeof(line), f)) {
			if (!strncmp(line, "Name:\t", 6))
				is_it = !strncmp(line + 6, name, strlen(name));
			sscanf(line, "SigBlk:\t%llx", &mask);
		}
		if (f)
			fclose(f);
		if (is_it)
			blocked = mask;
	}
	closedir(dir);
	return blocked;
}

static int manners(void)
{
	sigset_t before, after;
	CUdeviceptr ptr;

	symbol("cuInit");
	unsigned descriptors = open_descriptors();
	sigprocmask(SIG_SETMASK, NULL, &before);
	begin();
	CALL(alloc_function, "cuMemAlloc_v2", &ptr, MIB);
	usleep(100000);
	sigprocmask(SIG_SETMASK, NULL, &after);
	int masks_differ = 0;
	for (int i = 1; i < 65; i++)
		masks_differ += sigismember(&before, i) != sigismember(&after, i);
	printf("descriptors %d\n", (int)open_descriptors() - (int)descriptors);
	printf("masks differ %d\n", masks_differ);
	printf("helper takes SIGTERM %d\n", !(blocked_signals("allot") >> (SIGTERM - 1) & 1));
	return 0;
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";

#ifdef PROBE_LINKED
	if (!strcmp(what, "linked"))
		return linked();
#endif
	if (!strcmp(what, "look_up"))
		return look_up();
	if (!strcmp(what, "proc_address"))
		return proc_address();
	if (!strcmp(what, "next"))
		return next();
	if (!strcmp(what, "reload"))
		return reload();
	if (!strcmp(what, "unknown"))
		return unknown();
	if (!strcmp(what, "hold"))
		return hold();
	if (!strcmp(what, "forked"))
		return forked();
	if (!strcmp(what, "exec_again"))
		return exec_again(argv);
	if (!strcmp(what, "manners"))
		return manners();
	fprintf(stderr, "probe: '%s': unknown\n", what);
	return 2;
}
