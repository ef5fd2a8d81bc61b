/*
 * memory_storm: 8 processes of 8 threads allocate and free at random through every governed API. At no
 * moment may the tenant hold more than its quota: by its own count after every grant, by the ledger's
 * slots, by the daemon's list; and when all is freed, each of these is exactly zero.
 *
 *     memory_storm [--ops N]     10^6 when not said
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "gpu.h"
#include "stage.h"

#define PROCESSES 8
#define THREADS 8
#define HELD 12
#define QUOTA (3 * GIB)
#define CONTEXT (64 * MIB)

enum api {
	API_LINEAR,
	API_PITCH,
	API_MANAGED,
	API_ASYNC,
	API_FROM_POOL,
	API_ARRAY,
	API_ARRAY3D,
	API_MIPMAP,
	API_PHYSICAL,
	API_CONTEXT,
	API_COUNT,
};

static const char *const api_names[API_COUNT] = {
	"cuMemAlloc",      "cuMemAllocPitch",         "cuMemAllocManaged",
	"cuMemAllocAsync", "cuMemAllocFromPoolAsync", "cuArrayCreate",
	"cuArray3DCreate", "cuMipmappedArrayCreate",  "cuMemCreate",
	"cuCtxCreate",
};

enum phase { PHASE_STORM, PHASE_FREE, PHASE_RELEASE, PHASE_END };

struct board {
	_Atomic uint64_t ops, limit;
	_Atomic uint64_t true_used, most; /* asked for and granted: at least so much is held */
	_Atomic uint64_t over;            /* times that this was over the quota */
	_Atomic uint64_t granted[API_COUNT], refused[API_COUNT];
	_Atomic uint32_t phase, arrived;
};

/* ---- a process of the tenant ---- */

static struct board *board;
static CUcontext primary;
static CUmemoryPool own_pool;

struct held {
	enum api api;
	uint64_t bytes; /* 0: an empty place */
	CUdeviceptr ptr;
	CUarray array;
	CUmipmappedArray mipmap;
	CUmemGenericAllocationHandle handle;
	CUcontext context;
};

struct storm_thread {
	pthread_t thread;
	uint64_t random;
	CUstream stream;
	struct held held[HELD];
};

static uint64_t pick(struct storm_thread *t, uint64_t most)
{
	return random_of(&t->random) % most;
}

/* Many small ones, some large. */
static uint64_t pick_bytes(struct storm_thread *t)
{
	static const uint64_t scales[] = { 4 * KIB, 256 * KIB, 2 * MIB, 16 * MIB, 48 * MIB };

	return 1 + pick(t, scales[pick(t, 5)]);
}

static CUresult alloc_physical(struct storm_thread *t, struct held *h)
{
	CUmemAllocationProp prop = {
		.type = CU_MEM_ALLOCATION_TYPE_PINNED,
		.location = { CU_MEM_LOCATION_TYPE_DEVICE, 0 },
	};

	h->bytes = (1 + pick(t, 12)) * 2 * MIB;
	CUresult result = cuMemCreate(&h->handle, h->bytes, &prop, 0);
	if (result != CUDA_SUCCESS)
		return result;
	GPU_DO(cuMemAddressReserve(&h->ptr, h->bytes, 0, 0, 0));
	GPU_DO(cuMemMap(h->ptr, h->bytes, 0, h->handle, 0));
	/* Half of them live on by their mapping alone. */
	if (pick(t, 2)) {
		GPU_DO(cuMemRelease(h->handle));
		h->handle = 0;
	}
	return result;
}

static CUresult alloc_array(struct storm_thread *t, struct held *h)
{
	CUDA_ARRAY_DESCRIPTOR d = { 1 + pick(t, 2048), 1 + pick(t, 1024), CU_AD_FORMAT_FLOAT, 4 };

	h->bytes = d.Width * d.Height * 16;
	return cuArrayCreate_v2(&h->array, &d);
}

static CUresult alloc_array3d(struct storm_thread *t, struct held *h)
{
	CUDA_ARRAY3D_DESCRIPTOR d = {
		.Width = 1 + pick(t, 256),
		.Height = 1 + pick(t, 256),
		.Depth = 1 + pick(t, 32),
		.Format = CU_AD_FORMAT_HALF,
		.NumChannels = 2,
	};

	h->bytes = d.Width * d.Height * d.Depth * 4;
	return cuArray3DCreate_v2(&h->array, &d);
}

static CUresult alloc_mipmap(struct storm_thread *t, struct held *h)
{
	CUDA_ARRAY3D_DESCRIPTOR d = {
		.Width = 256 + pick(t, 1024),
		.Height = 256 + pick(t, 1024),
		.Format = CU_AD_FORMAT_UNSIGNED_INT8,
		.NumChannels = 4,
	};

	h->bytes = d.Width * d.Height * 4;
	return cuMipmappedArrayCreate(&h->mipmap, &d, 4);
}

/* With memory in it that nobody frees. */
static CUresult make_context(struct held *h)
{
	CUdeviceptr inside;

	h->bytes = CONTEXT;
	CUresult result = cuCtxCreate_v2(&h->context, 0, 0);
	if (result == CUDA_SUCCESS) {
		CUresult inner = cuMemAlloc_v2(&inside, 8 * MIB);
		if (inner != CUDA_ERROR_OUT_OF_MEMORY)
			GPU_DO(inner);
		GPU_DO(cuCtxSetCurrent(primary));
	}
	return result;
}

static CUresult allocate(struct storm_thread *t, struct held *h)
{
	size_t pitch, width;

	switch (h->api) {
	case API_PITCH:
		width = 1 + pick(t, 5000);
		h->bytes = width * (1 + pick(t, 2000));
		return cuMemAllocPitch_v2(&h->ptr, &pitch, width, h->bytes / width, 16);
	case API_ARRAY: return alloc_array(t, h);
	case API_ARRAY3D: return alloc_array3d(t, h);
	case API_MIPMAP: return alloc_mipmap(t, h);
	case API_PHYSICAL: return alloc_physical(t, h);
	case API_CONTEXT: return make_context(h);
	default: break;
	}
	h->bytes = pick_bytes(t);
	switch (h->api) {
	case API_MANAGED: return cuMemAllocManaged(&h->ptr, h->bytes, 1);
	case API_ASYNC: return cuMemAllocAsync(&h->ptr, h->bytes, t->stream);
	case API_FROM_POOL: return cuMemAllocFromPoolAsync(&h->ptr, h->bytes, own_pool, t->stream);
	default: return cuMemAlloc_v2(&h->ptr, h->bytes);
	}
}

static void release(struct storm_thread *t, struct held *h)
{
	atomic_fetch_sub(&board->true_used, h->bytes);
	switch (h->api) {
	case API_ASYNC:
	case API_FROM_POOL:
		GPU_DO(pick(t, 4) ? cuMemFreeAsync(h->ptr, t->stream) : cuMemFree_v2(h->ptr));
		break;
	case API_ARRAY:
	case API_ARRAY3D: GPU_DO(cuArrayDestroy(h->array)); break;
	case API_MIPMAP: GPU_DO(cuMipmappedArrayDestroy(h->mipmap)); break;
	case API_PHYSICAL:
		if (h->handle && pick(t, 2)) {
			GPU_DO(cuMemRelease(h->handle));
			h->handle = 0;
		}
		GPU_DO(cuMemUnmap(h->ptr, h->bytes));
		GPU_DO(cuMemAddressFree(h->ptr, h->bytes));
		if (h->handle)
			GPU_DO(cuMemRelease(h->handle));
		break;
	case API_CONTEXT: GPU_DO(cuCtxDestroy_v2(h->context)); break;
	default: GPU_DO(cuMemFree_v2(h->ptr));
	}
	memset(h, 0, sizeof(*h));
}

static enum api pick_api(struct storm_thread *t)
{
	uint64_t n = pick(t, 200);

	return n == 0 ? API_CONTEXT : (enum api)(n % (API_COUNT - 1));
}

static void step(struct storm_thread *t)
{
	struct held *h = &t->held[pick(t, HELD)];

	if (h->bytes) {
		release(t, h);
		return;
	}
	h->api = pick_api(t);
	CUresult result = allocate(t, h);
	if (result == CUDA_ERROR_OUT_OF_MEMORY) {
		atomic_fetch_add(&board->refused[h->api], 1);
		memset(h, 0, sizeof(*h));
		return;
	}
	gpu_check(result, api_names[h->api]);
	uint64_t used = atomic_fetch_add(&board->true_used, h->bytes) + h->bytes;
	uint64_t most = atomic_load(&board->most);
	while (used > most && !atomic_compare_exchange_weak(&board->most, &most, used))
		;
	atomic_fetch_add(&board->over, used > QUOTA);
	atomic_fetch_add(&board->granted[h->api], 1);
	if (pick(t, 50) == 0)
		GPU_DO(cuStreamSynchronize(t->stream));
}

static void *storm(void *context)
{
	struct storm_thread *t = context;

	GPU_DO(cuCtxSetCurrent(primary));
	t->stream = gpu_stream();
	while (atomic_fetch_add(&board->ops, 1) < atomic_load(&board->limit))
		step(t);
	for (unsigned i = 0; i < HELD; i++)
		if (t->held[i].bytes)
			release(t, &t->held[i]);
	GPU_DO(cuStreamSynchronize(t->stream));
	GPU_DO(cuStreamDestroy_v2(t->stream));
	return NULL;
}

static void wait_for(enum phase phase)
{
	while (atomic_load(&board->phase) < (uint32_t)phase)
		sleep_ms(5);
}

static int be_process(char **argv)
{
	static struct storm_thread threads[THREADS];
	CUmemPoolProps props = {
		.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
		.location = { CU_MEM_LOCATION_TYPE_DEVICE, 0 },
	};
	CUmemoryPool shared_pool;

	board = open_board(argv[2], sizeof(*board));
	primary = gpu_start();
	atomic_fetch_add(&board->true_used, CONTEXT);
	GPU_DO(cuMemPoolCreate(&own_pool, &props));
	for (unsigned i = 0; i < THREADS; i++) {
		threads[i].random = ((uint64_t)atoi(argv[3]) * THREADS + i + 1) *
				    0x9e3779b97f4a7c15ULL;
		pthread_create(&threads[i].thread, NULL, storm, &threads[i]);
	}
	for (unsigned i = 0; i < THREADS; i++)
		pthread_join(threads[i].thread, NULL);
	GPU_DO(cuDeviceGetDefaultMemPool(&shared_pool, 0));
	GPU_DO(cuMemPoolTrimTo(shared_pool, 0));
	GPU_DO(cuMemPoolDestroy(own_pool));
	atomic_fetch_add(&board->arrived, 1);
	wait_for(PHASE_RELEASE);
	GPU_DO(cuDevicePrimaryCtxRelease_v2(0));
	atomic_fetch_add(&board->arrived, 1);
	wait_for(PHASE_END);
	return 0;
}

/* ---- the watcher ---- */

struct seen {
	uint64_t slots, card, list, samples, missed;
};

static void look(struct stage *s, struct seen *seen, uint64_t n)
{
	uint64_t slots = stage_slots_used(&s->tenant[0]), card = stage_card_used(s, 0);

	seen->samples++;
	if (slots == UINT64_MAX)
		seen->missed++;
	else if (slots > seen->slots)
		seen->slots = slots;
	if (card > seen->card)
		seen->card = card;
	if (n % 50)
		return;
	json_t *list = stage_list(s);
	uint64_t used = (uint64_t)json_integer_value(
		json_object_get(stage_find_device(list, "storm"), "memory_used_bytes"));
	if (used > seen->list)
		seen->list = used;
	json_decref(list);
}

/* Ends when a process has ended: none should before the last phase. */
static void wait_for_all(struct stage *s, struct seen *seen, uint32_t arrived)
{
	for (uint64_t n = 0; atomic_load(&board->arrived) < arrived; n++) {
		int status;
		if (seen)
			look(s, seen, n);
		pid_t pid = waitpid(-1, &status, WNOHANG);
		if (pid > 0)
			give_up("process %d ended early: status 0x%x", (int)pid, (unsigned)status);
		sleep_ms(2);
	}
}

static void print_counts(void)
{
	for (int i = 0; i < API_COUNT; i++)
		printf("%-24s %8llu granted %8llu refused\n", api_names[i],
		       (unsigned long long)board->granted[i], (unsigned long long)board->refused[i]);
}

static double in_mib(uint64_t bytes)
{
	return (double)bytes / (double)MIB;
}

static void check_zero(struct stage *s, uint64_t contexts, const char *name)
{
	uint64_t slots = 1, card = 1, list_used = 1;

	/* The helper thread settles pools 50 times a second; a census looks for the rest each second. */
	for (int i = 0; i < 300 && (slots != contexts || card != contexts || list_used != contexts);
	     i++) {
		json_t *list = stage_list(s);
		list_used = (uint64_t)json_integer_value(
			json_object_get(stage_find_device(list, "storm"), "memory_used_bytes"));
		json_decref(list);
		slots = stage_slots_used(&s->tenant[0]);
		card = stage_card_used(s, 0);
		sleep_ms(10);
	}
	bar(name, slots == contexts && card == contexts && list_used == contexts,
	    "ledger %llu, daemon %llu, card %llu bytes; expected %llu", (unsigned long long)slots,
	    (unsigned long long)list_used, (unsigned long long)card, (unsigned long long)contexts);
}

int main(int argc, char **argv)
{
	static struct stage stage;
	struct seen seen = { 0 };
	pid_t pids[PROCESSES];
	int fd;

	if (argc == 4 && !strcmp(argv[1], "process"))
		return be_process(argv);
	board = shared_board(sizeof(*board), &fd);
	board->limit = argc == 3 && !strcmp(argv[1], "--ops") ? strtoull(argv[2], NULL, 10)
							      : 1000000;

	stage_start(&stage, "memory = 16 GiB\ncontext = 64 MiB\n", "context_bytes = 64MiB\n");
	struct stage_tenant *tenant = stage_add_tenant(&stage, "storm", QUOTA, 0, 0);
	stage_watch(tenant);
	uint64_t begin = now_ns();
	for (int i = 0; i < PROCESSES; i++) {
		char fd_text[16], number[16];
		snprintf(fd_text, sizeof(fd_text), "%d", fd);
		snprintf(number, sizeof(number), "%d", i);
		char *const args[] = { argv[0], (char *)"process", fd_text, number, NULL };
		pids[i] = stage_spawn(&stage, tenant, args);
	}
	wait_for_all(&stage, &seen, PROCESSES);
	double took_s = (double)(now_ns() - begin) / 1e9;
	print_counts();
	printf("%llu operations in %.1f s; %llu samples, %llu without a moment of rest\n",
	       (unsigned long long)board->limit, took_s, (unsigned long long)seen.samples,
	       (unsigned long long)seen.missed);
	bar("memory_storm.own_count", board->over == 0, "at most %.1f of %.0f MiB, over %llu times",
	    in_mib(board->most), in_mib(QUOTA), (unsigned long long)board->over);
	bar("memory_storm.ledger", seen.slots <= QUOTA, "at most %.1f of %.0f MiB",
	    in_mib(seen.slots), in_mib(QUOTA));
	bar("memory_storm.card", seen.card <= QUOTA, "at most %.1f of %.0f MiB", in_mib(seen.card),
	    in_mib(QUOTA));
	bar("memory_storm.daemon", seen.list <= QUOTA, "at most %.1f of %.0f MiB",
	    in_mib(seen.list), in_mib(QUOTA));
	check_zero(&stage, PROCESSES * CONTEXT, "memory_storm.all_freed");
	atomic_store(&board->phase, PHASE_RELEASE);
	wait_for_all(&stage, NULL, 2 * PROCESSES);
	check_zero(&stage, 0, "memory_storm.contexts_released");
	atomic_store(&board->phase, PHASE_END);
	for (int i = 0; i < PROCESSES; i++) {
		int status = 0;
		waitpid(pids[i], &status, 0);
		bar("memory_storm.exit", status == 0, "process %d: status 0x%x", i,
		    (unsigned)status);
	}
	check_zero(&stage, 0, "memory_storm.all_exited");
	stage_stop(&stage);
	return bar_status();
}
