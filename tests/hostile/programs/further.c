/*
 * Ways to get more than the tenant's quota and share, beyond those of the other programs here. A way whose preparation succeeded
 * prints "begun". Exit status 9: the driver refused the program a context or memory.
 *
 *     further deep DEPTH COMMAND...   starts the command below DEPTH processes of this program
 *     further undumpable MIB          holds memory; /proc/PID belongs to root
 *     further stopped MIB             holds memory, and is stopped whenever something continues it
 *     further zero MIB                holds memory, and sets all ledgers of its tenant to 0
 *     further without CALL            makes a context, although system call CALL fails for the process
 *     further host                    allocates page-locked memory in each way that the driver has
 *     further export GIB              makes GIB times 1 GiB, of each of which only an exported descriptor is left
 *     further churn SECONDS           launches into streams that it destroys while they have work
 *     further deaf SECONDS            launches while a signal handler blocks the library's thread
 *     further past COPY SECONDS       launches by a copy of the driver
 *     further paid COPY SECONDS       the same, and reports this work truthfully
 *     further burst COPY SECONDS      launches by a copy of the driver, and reports the work of a fifth of each second
 *     further page SECONDS            launches by the hooks, with an own page in place of the control page
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>

#include "abi/cuda_abi.h"
#include "slot.h"

#define NO_CODE ".version 6.0\n.target sm_60\n.address_size 64\n"
#define MIB (UINT64_C(1) << 20)
#define REFUSED 9

/* The functions of one copy of the driver. */
static struct {
	int (*init)(unsigned);
	int (*retain)(void **, int);
	int (*set_current)(void *);
	int (*load)(void **, const void *);
	int (*function)(void **, void *, const char *);
	int (*launch)(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
		      void *, void **, void **);
	int (*synchronize)(void);
	int (*stream)(void **, unsigned);
	int (*end_stream)(void *);
	int (*alloc)(uint64_t *, size_t);
	int (*host_alloc)(void **, size_t, unsigned);
	int (*host_alloc_old)(void **, size_t);
	int (*host_register)(void *, size_t, unsigned);
	int (*create)(uint64_t *, size_t, const CUmemAllocationProp *, unsigned long long);
	int (*export)(void *, uint64_t, int, unsigned long long);
	int (*release)(uint64_t);
	int (*pool)(void **, const CUmemPoolProps *);
	int (*from_pool)(uint64_t *, size_t, void *, void *);
} d;
static void *work;

static void open_driver(const char *name)
{
	void *library = dlopen(name, RTLD_NOW | RTLD_LOCAL), *context, *module;
	if (!library)
		exit(2);
#define FIND(field, symbol) *(void **)&d.field = dlsym(library, symbol)
	FIND(init, "cuInit");
	FIND(retain, "cuDevicePrimaryCtxRetain");
	FIND(set_current, "cuCtxSetCurrent");
	FIND(load, "cuModuleLoadData");
	FIND(function, "cuModuleGetFunction");
	FIND(launch, "cuLaunchKernel");
	FIND(synchronize, "cuCtxSynchronize");
	FIND(stream, "cuStreamCreate");
	FIND(end_stream, "cuStreamDestroy_v2");
	FIND(alloc, "cuMemAlloc_v2");
	FIND(host_alloc, "cuMemHostAlloc");
	FIND(host_alloc_old, "cuMemAllocHost_v2");
	FIND(host_register, "cuMemHostRegister_v2");
	FIND(create, "cuMemCreate");
	FIND(export, "cuMemExportToShareableHandle");
	FIND(release, "cuMemRelease");
	FIND(pool, "cuMemPoolCreate");
	FIND(from_pool, "cuMemAllocFromPoolAsync");
	if (d.init(0) || d.retain(&context, 0) || d.set_current(context))
		exit(REFUSED);
	if (d.load(&module, NO_CODE) || d.function(&work, module, "allot_sim_200us_264b"))
		exit(3);
}

static void begun(void)
{
	puts("begun");
	fflush(stdout);
}

static void hold(uint64_t mib)
{
	uint64_t at;
	open_driver("libcuda.so.1");
	if (d.alloc(&at, mib * MIB))
		exit(REFUSED);
	begun();
}

static double now_s(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void launch(void *stream)
{
	if (d.launch(work, 264, 1, 1, 256, 1, 1, 0, stream, NULL, NULL))
		exit(4);
}

static void launch_some(void)
{
	for (unsigned i = 0; i < 20; i++)
		launch(NULL);
	d.synchronize();
}

/* ---- memory ---- */

static int run_deep(unsigned depth, char **command)
{
	while (depth--)
		if (fork()) {
			wait(NULL); /* so that none is left when the last one ends */
			return 0;
		}
	execvp(command[0], command);
	return 1;
}

static void keep_ledgers_at_zero(uint64_t mib)
{
	hold(mib);
	struct region_report *report = find_report();
	for (;; usleep(200))
		for (unsigned i = 0; report && i < 16; i++)
			report->slot[i].device[0].used_bytes = 0;
}

static int keep_descriptors(unsigned gib)
{
	CUmemAllocationProp prop = { .type = 1,
				     .location = { .type = 1 },
				     .requestedHandleTypes = 1 };
	uint64_t handle;
	int fd;
	open_driver("libcuda.so.1");
	for (unsigned i = 0; i < gib; i++)
		if (d.create(&handle, 1024 * MIB, &prop, 0) || d.export(&fd, handle, 1, 0) ||
		    d.release(handle))
			break;
	begun();
	pause();
	return 0;
}

static int try_host_memory(void)
{
	const size_t bytes = 64 * MIB;
	void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), *p;
	uint64_t handle;
	unsigned got = 0;
	open_driver("libcuda.so.1");
	got += !d.host_alloc(&p, bytes, 0);
	got += !d.host_alloc_old(&p, bytes);
	got += !d.host_register(at, bytes, 0);
	for (int type = CU_MEM_LOCATION_TYPE_HOST; type <= CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT;
	     type++) {
		CUmemAllocationProp prop = { .type = 1, .location = { .type = type } };
		CUmemPoolProps props = { .allocType = 1, .location = { .type = type } };
		got += !d.create(&handle, bytes, &prop, 0);
		got += !d.pool(&p, &props) && !d.from_pool(&handle, bytes, p, NULL);
	}
	printf("%u\n", got);
	return 0;
}

/* ---- what the library needs of the kernel ---- */

static void let_fail(long call, int error)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)call, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (uint32_t)error),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { 4, code };
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
	    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program))
		exit(5);
}

static int run_without(const char *call)
{
	if (!strcmp(call, "threads")) {
		let_fail(SYS_clone, EAGAIN);
		let_fail(SYS_clone3, EAGAIN);
	} else if (!strcmp(call, "madvise")) {
		let_fail(SYS_madvise, EPERM);
	} else if (!strcmp(call, "socket")) {
		let_fail(SYS_socket, EPERM);
	} else {
		return 2;
	}
	open_driver("libcuda.so.1");
	begun();
	return 0;
}

/* ---- time ---- */

static void churn_streams(double end)
{
	while (now_s() < end) {
		void *stream;
		if (d.stream(&stream, 1))
			exit(6);
		for (unsigned i = 0; i < 20; i++)
			launch(stream);
		d.end_stream(stream);
	}
}

static void block(int number)
{
	for (;;)
		pause();
}

static void block_librarys_thread(void)
{
	DIR *tasks = opendir("/proc/self/task");
	signal(SIGUSR2, block);
	for (struct dirent *e; tasks && (e = readdir(tasks));) {
		char path[300], name[32] = "";
		snprintf(path, sizeof(path), "/proc/self/task/%s/comm", e->d_name);
		FILE *file = fopen(path, "r");
		if (file && fgets(name, sizeof(name), file) && !strcmp(name, "allot\n"))
			syscall(SYS_tgkill, getpid(), atoi(e->d_name), SIGUSR2);
		if (file)
			fclose(file);
	}
	closedir(tasks);
}

static void report_work(struct region_slot_device *slot, double end, double part)
{
	for (double last = now_s(), now; last < end; last = now) {
		bool is_told = last - (double)(long)last < part;
		slot->busy = is_told;
		launch_some();
		now = now_s();
		slot->launches += is_told ? 20 : 0;
		slot->busy_ns += is_told ? (uint64_t)((now - last) * 1e9) : 0;
	}
}

static void launch_under_own_page(double end)
{
	FILE *maps = fopen("/proc/self/maps", "r");
	char line[512];
	unsigned long from = 0, to = 0;
	while (maps && fgets(line, sizeof(line), maps))
		if (strstr(line, "allot-control") && !from)
			sscanf(line, "%lx-%lx", &from, &to);
	if (!from)
		exit(7);
	fclose(maps);
	struct region_control *page = (struct region_control *)from, *copy = malloc(to - from);
	memcpy(copy, page, to - from);
	mmap(page, to - from, PROT_READ | PROT_WRITE, MAP_FIXED | MAP_PRIVATE | MAP_ANONYMOUS, -1,
	     0);
	memcpy(page, copy, to - from);
	page->device[0].lease = LEASE_GO;
	page->device[0].turn = 0;
	page->device[0].depth_ns = page->device[0].long_work_ns = 100000000;
	while (now_s() < end) {
		page->heartbeat++;
		launch_some();
	}
}

int main(int argc, char **argv)
{
	const char *way = argc > 1 ? argv[1] : "";
	const char *first = argc > 2 ? argv[2] : "0";
	if (!strcmp(way, "deep") && argc > 3)
		return run_deep((unsigned)atoi(first), argv + 3);
	if (!strcmp(way, "without"))
		return run_without(first);
	if (!strcmp(way, "export"))
		return keep_descriptors((unsigned)atoi(first));
	if (!strcmp(way, "host"))
		return try_host_memory();
	if (!strcmp(way, "undumpable") || !strcmp(way, "stopped")) {
		hold((uint64_t)atoi(first));
		prctl(PR_SET_DUMPABLE, way[0] == 's', 0, 0, 0);
		for (;;)
			way[0] == 's' ? raise(SIGSTOP) : pause();
	}
	if (!strcmp(way, "zero"))
		keep_ledgers_at_zero((uint64_t)atoi(first));
	open_driver("libcuda.so.1");
	if (strcmp(way, "past"))
		launch_some();
	struct region_slot_device *slot = find_slot(find_report());
	if (!slot)
		return 8;
	if (argc > 3)
		open_driver(first);
	if (!strcmp(way, "deaf"))
		block_librarys_thread();
	begun();
	double end = now_s() + atof(argv[argc - 1]);
	if (!strcmp(way, "churn"))
		churn_streams(end);
	else if (!strcmp(way, "paid"))
		report_work(slot, end, 1);
	else if (!strcmp(way, "burst"))
		report_work(slot, end, 0.2);
	else if (!strcmp(way, "page"))
		launch_under_own_page(end);
	else
		while (now_s() < end)
			launch_some();
	_exit(0);
}
