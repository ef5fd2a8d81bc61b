/* Starts the simulated driver, injects faults, and sends requests to the server. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "sim/cuda/sim.h"
#include "sim/mps/mps_client.h"

struct sim sim = { .lock = PTHREAD_MUTEX_INITIALIZER };
pthread_mutex_t sim_capture_lock = PTHREAD_MUTEX_INITIALIZER;
pthread_mutex_t sim_event_lock = PTHREAD_MUTEX_INITIALIZER;

/* A fault of one function. ALLOT_SIM_FAULT is a list: hang=SYMBOL,crash=SYMBOL,fail=SYMBOL:CODE[:AFTER],oom-after=N */
struct fault {
	char symbol[64];
	bool hang, crash;
	int code;
	atomic_llong after; /* calls that still succeed */
};

static struct fault faults[16];
static int faults_n;
static atomic_llong oom_after = -1;
static pthread_once_t faults_once = PTHREAD_ONCE_INIT;
static pthread_mutex_t init_lock = PTHREAD_MUTEX_INITIALIZER;

static void faults_read(void)
{
	const char *at = getenv("ALLOT_SIM_FAULT");

	while (at && *at && faults_n < 16) {
		struct fault *f = &faults[faults_n];
		size_t n = strcspn(at, ",");
		char word[128];
		char *colon;

		if (n < sizeof(word)) {
			memcpy(word, at, n);
			word[n] = '\0';
			if (!strncmp(word, "oom-after=", 10)) {
				oom_after = atoll(word + 10);
			} else if (!strncmp(word, "hang=", 5) && n - 5 < sizeof(f->symbol)) {
				strcpy(f->symbol, word + 5);
				f->hang = true;
				faults_n++;
			} else if (!strncmp(word, "crash=", 6) && n - 6 < sizeof(f->symbol)) {
				strcpy(f->symbol, word + 6);
				f->crash = true;
				faults_n++;
			} else if (!strncmp(word, "fail=", 5) && (colon = strchr(word, ':')) &&
				   (size_t)(colon - word - 5) < sizeof(f->symbol)) {
				*colon = '\0';
				strcpy(f->symbol, word + 5);
				f->code = atoi(colon + 1);
				colon = strchr(colon + 1, ':');
				f->after = colon ? atoll(colon + 1) : 0;
				faults_n++;
			}
		}
		at += n;
		at += *at == ',';
	}
}

static CUresult fault_at(const char *name)
{
	for (int i = 0; i < faults_n; i++) {
		if (strcmp(faults[i].symbol, name))
			continue;
		while (faults[i].hang)
			pause();
		if (faults[i].crash)
			abort();
		if (atomic_fetch_sub(&faults[i].after, 1) <= 0)
			return (CUresult)faults[i].code;
	}
	return CUDA_SUCCESS;
}

bool sim_fault_oom(void)
{
	if (atomic_load_explicit(&oom_after, memory_order_relaxed) < 0)
		return false;
	for (;;) {
		long long n = atomic_load(&oom_after);

		if (n <= 0)
			return true;
		if (atomic_compare_exchange_weak(&oom_after, &n, n - 1))
			return false;
	}
}

CUresult sim_enter_slow(const char *name, bool needs_init)
{
	int mode = atomic_load(&sim.mode);

	pthread_once(&faults_once, faults_read);
	SIM_FAIL_IF(needs_init && mode != SIM_READY && mode != SIM_FAULTY,
		    CUDA_ERROR_NOT_INITIALIZED);
	return faults_n ? fault_at(name) : CUDA_SUCCESS;
}

static void in_fork_child(void)
{
	/* As with the real driver, the parent's state is useless in the child. */
	if (atomic_load(&sim.mode) != SIM_UNINIT)
		atomic_store(&sim.mode, SIM_FORKED);
	mps_forget();
}

/* Opens the file that stands for the driver's device node (SIM_NODE_SUFFIX in wire.h). */
static void open_node(const char *socket_path)
{
	char path[SIM_NODE_MAX];

	snprintf(path, sizeof(path), "%s" SIM_NODE_SUFFIX, socket_path);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd >= 0)
		close(fd);
}

/* All that the process had on the GPU is gone with its MPS server, so every later call fails. */
static void on_mps_server_gone(void *unused)
{
	link_abort(&sim.link);
}

static CUresult attach_to_mps(void)
{
	switch (mps_attach(on_mps_server_gone, NULL)) {
	case -EUSERS: return CUDA_ERROR_MPS_MAX_CLIENTS_REACHED;
	case -ECONNREFUSED: return CUDA_ERROR_MPS_CONNECTION_FAILED;
	default: return CUDA_SUCCESS;
	}
}

CUresult cuInit(unsigned int flags)
{
	const char *path;
	CUresult r = CUDA_SUCCESS;

	SIM_TRY(sim_enter_slow("cuInit", false));
	SIM_FAIL_IF(flags, CUDA_ERROR_INVALID_VALUE);
	pthread_mutex_lock(&init_lock);
	switch (atomic_load(&sim.mode)) {
	case SIM_READY:
	case SIM_FAULTY: break;
	case SIM_FORKED: r = CUDA_ERROR_NOT_INITIALIZED; break;
	default:
		path = getenv("ALLOT_SIM_SOCKET");
		if (path && *path)
			open_node(path);
		if (!path || !*path || link_open(&sim.link, path, SIM_KIND_CUDA) < 0) {
			r = CUDA_ERROR_NO_DEVICE;
			break;
		}
		r = attach_to_mps();
		if (r != CUDA_SUCCESS) {
			link_close(&sim.link);
			break;
		}
		r = sim_va_init() ? sim_find_devices() : CUDA_ERROR_OUT_OF_MEMORY;
		if (r != CUDA_SUCCESS) {
			link_close(&sim.link);
			break;
		}
		pthread_atfork(NULL, NULL, in_fork_child);
		atomic_store(&sim.mode, faults_n ? SIM_FAULTY : SIM_READY);
	}
	pthread_mutex_unlock(&init_lock);
	return r;
}

CUresult sim_call(struct sim_request_msg m, uint64_t *ret_val)
{
	return (CUresult)link_call(&sim.link, m, ret_val, NULL, NULL);
}

CUresult sim_post(struct sim_request_msg m)
{
	return (CUresult)link_post(&sim.link, m);
}

/* Ids of streams [0] and of events [1]. Freed ids are used again, so that the server's tables stay small. */
static struct {
	pthread_mutex_t lock;
	uint32_t next;
	uint32_t *spare;
	uint32_t spare_n, spare_size;
} ids[2] = { { .lock = PTHREAD_MUTEX_INITIALIZER, .next = 1 },
	     { .lock = PTHREAD_MUTEX_INITIALIZER, .next = 1 } };

uint32_t sim_id_get(int which)
{
	pthread_mutex_lock(&ids[which].lock);
	uint32_t id = ids[which].spare_n ? ids[which].spare[--ids[which].spare_n]
					 : ids[which].next++;
	pthread_mutex_unlock(&ids[which].lock);
	return id;
}

void sim_id_put(int which, uint32_t id)
{
	pthread_mutex_lock(&ids[which].lock);
	if (ids[which].spare_n == ids[which].spare_size) {
		uint32_t size = ids[which].spare_size ? ids[which].spare_size * 2 : 64;
		uint32_t *spare = realloc(ids[which].spare, size * sizeof(*spare));

		if (spare) {
			ids[which].spare = spare;
			ids[which].spare_size = size;
		}
	}
	if (ids[which].spare_n < ids[which].spare_size)
		ids[which].spare[ids[which].spare_n++] = id;
	pthread_mutex_unlock(&ids[which].lock);
}
