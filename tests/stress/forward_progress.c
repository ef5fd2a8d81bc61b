/*
 * forward_progress: programs whose work waits for something that a gate could hold back for ever, each
 * 100 times beside a tenant that saturates the card: a stream that waits for a value which the same
 * thread writes later, a host function that needs a lock held by a launching thread, a persistent
 * kernel, ranks that spin for each other, an event of another tenant's process, a holder that is
 * stopped. All must end, and the other tenant must go on meanwhile.
 *
 *     forward_progress [--times N]     100 when not said
 */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "gpu.h"
#include "load.h"
#include "stage.h"

#define LAUNCHES 100 /* of 200 us: 20 ms, far more than may be in flight */
#define KERNEL_US 200
#define PERSISTS_MS 2000
#define PATIENCE_S 120
#define STOPPED_LAUNCHES 100 /* far more than may be in flight */
#define WAIT_GEQ 0

enum { BY_SATURATOR, BY_SUBJECT, FIGURES };

struct board {
	struct load_figures figures[FIGURES];
	unsigned times;
	_Atomic uint32_t done, peer_done; /* rounds */
	_Atomic uint64_t longest_ns;      /* a round took at most */
	_Atomic uint32_t recorded, has_handle;
	CUipcEventHandle handle;
	/* For ranks: each spins for its own word, which the other writes. */
	_Alignas(4096) volatile uint32_t word[2][1024];
};

static struct board *board;

static void round_done(uint64_t begin)
{
	uint64_t took = now_ns() - begin;

	if (took > atomic_load(&board->longest_ns))
		atomic_store(&board->longest_ns, took);
	atomic_fetch_add(&board->done, 1);
}

static void launch_many(CUfunction kernel, CUstream stream)
{
	for (unsigned i = 0; i < LAUNCHES; i++)
		gpu_launch(kernel, stream);
}

/* ---- the cases, each a process ---- */

static void wait_value(void)
{
	CUfunction kernel = gpu_kernel(KERNEL_US);
	CUstream stream = gpu_stream();
	CUdeviceptr ptr;
	volatile uint32_t *word = gpu_host_word(&ptr);

	for (unsigned n = 1; n <= board->times; n++) {
		uint64_t begin = now_ns();
		GPU_DO(cuStreamWaitValue32_v2(stream, ptr, n, WAIT_GEQ));
		launch_many(kernel, stream);
		*word = n;
		GPU_DO(cuStreamSynchronize(stream));
		round_done(begin);
	}
}

static void take_lock(void *lock)
{
	pthread_mutex_lock(lock);
	pthread_mutex_unlock(lock);
}

static void host_lock(void)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	CUfunction kernel = gpu_kernel(KERNEL_US);
	CUstream stream = gpu_stream();

	for (unsigned n = 0; n < board->times; n++) {
		uint64_t begin = now_ns();
		pthread_mutex_lock(&lock);
		GPU_DO(cuLaunchHostFunc(stream, take_lock, &lock));
		launch_many(kernel, stream);
		pthread_mutex_unlock(&lock);
		GPU_DO(cuStreamSynchronize(stream));
		round_done(begin);
	}
}

static void launch_spin(CUfunction spin, CUstream stream, CUdeviceptr ptr)
{
	void *params[] = { &ptr };

	GPU_DO(cuLaunchKernel(spin, 1, 1, 1, 32, 1, 1, 0, stream, params, NULL));
}

static void persistent(void)
{
	CUfunction kernel = gpu_kernel(KERNEL_US), spin = gpu_spin_kernel();
	CUstream one = gpu_stream(), other = gpu_stream();
	CUdeviceptr ptr;
	volatile uint32_t *word = gpu_host_word(&ptr);

	for (unsigned n = 0; n < board->times; n++) {
		uint64_t begin = now_ns();
		*word = 0;
		launch_spin(spin, one, ptr);
		launch_many(kernel, other);
		/* Once by the program's own wish: what it is then taken for must not hold up the rounds after. */
		if (n == 0)
			sleep_ms(PERSISTS_MS);
		*word = 1;
		GPU_DO(cuStreamSynchronize(one));
		GPU_DO(cuStreamSynchronize(other));
		round_done(begin);
	}
}

/* Two processes of one tenant, as two ranks of a collective: each runs on when the other has come. */
static void rank(unsigned self)
{
	CUfunction kernel = gpu_kernel(KERNEL_US), spin = gpu_spin_kernel();
	CUstream stream = gpu_stream();
	CUdeviceptr ptr[2];

	for (unsigned i = 0; i < 2; i++) {
		void *host = (void *)(uintptr_t)board->word[i];
		GPU_DO(cuMemHostRegister_v2(host, 4096, 0));
		GPU_DO(cuMemHostGetDevicePointer_v2(&ptr[i], host, 0));
	}
	for (unsigned n = 0; n < board->times; n++) {
		uint64_t begin = now_ns();
		for (unsigned i = 0; i < 10; i++)
			gpu_launch(kernel, stream);
		GPU_DO(cuStreamWriteValue32_v2(stream, ptr[!self] + 4 * n, 1, 0));
		launch_spin(spin, stream, ptr[self] + 4 * n);
		GPU_DO(cuStreamSynchronize(stream));
		if (self)
			round_done(begin);
		else
			atomic_fetch_add(&board->peer_done, 1);
	}
}

static void rank_first(void)
{
	rank(0);
}

static void rank_second(void)
{
	rank(1);
}

static void wait_until(_Atomic uint32_t *word, uint32_t value)
{
	while (atomic_load(word) < value)
		usleep(100);
}

/* The producer's event, recorded behind work that needs the lease ... */
static void ipc_producer(void)
{
	CUfunction kernel = gpu_kernel(KERNEL_US);
	CUstream stream = gpu_stream();
	CUevent event;

	GPU_DO(cuEventCreate(&event, CU_EVENT_INTERPROCESS | CU_EVENT_DISABLE_TIMING));
	GPU_DO(cuEventRecord(event, stream));
	GPU_DO(cuIpcGetEventHandle(&board->handle, event));
	atomic_store(&board->has_handle, 1);
	for (unsigned n = 1; n <= board->times; n++) {
		launch_many(kernel, stream);
		GPU_DO(cuEventRecord(event, stream));
		atomic_store(&board->recorded, n);
		wait_until(&board->done, n);
	}
	GPU_DO(cuStreamSynchronize(stream));
	atomic_store(&board->peer_done, board->times);
}

/* ... for which work of another tenant waits, on its own lease. */
static void ipc_consumer(void)
{
	CUfunction kernel = gpu_kernel(KERNEL_US);
	CUstream stream = gpu_stream();
	CUevent event;

	wait_until(&board->has_handle, 1);
	GPU_DO(cuIpcOpenEventHandle(&event, board->handle));
	for (unsigned n = 1; n <= board->times; n++) {
		wait_until(&board->recorded, n);
		uint64_t begin = now_ns();
		GPU_DO(cuStreamWaitEvent(stream, event, 0));
		launch_many(kernel, stream);
		GPU_DO(cuStreamSynchronize(stream));
		round_done(begin);
	}
}

static void be_load(unsigned figures, unsigned batch)
{
	const struct load_options options = { .kernel_us = 1000, .batch = batch };

	load_run(&board->figures[figures], &options);
}

static void saturator(void)
{
	be_load(BY_SATURATOR, 64);
}

static void subject(void)
{
	be_load(BY_SUBJECT, 64);
}

static const struct role {
	const char *name;
	void (*run)(void);
	bool starts_itself; /* the GPU */
} roles[] = {
	{ "wait_value", wait_value, false },
	{ "host_lock", host_lock, false },
	{ "persistent", persistent, false },
	{ "rank_first", rank_first, false },
	{ "rank_second", rank_second, false },
	{ "ipc_producer", ipc_producer, false },
	{ "ipc_consumer", ipc_consumer, false },
	{ "saturator", saturator, true },
	{ "subject", subject, true },
};

static int be_process(char **argv)
{
	board = open_board(argv[3], sizeof(*board));
	for (size_t i = 0; i < sizeof(roles) / sizeof(roles[0]); i++)
		if (!strcmp(argv[2], roles[i].name)) {
			if (!roles[i].starts_itself)
				gpu_start();
			roles[i].run();
			return 0;
		}
	return 2;
}

/* ---- the parent ---- */

static struct stage stage;
static char *self;
static int board_fd;

static pid_t start(const struct stage_tenant *tenant, const char *role)
{
	char fd_text[16];

	snprintf(fd_text, sizeof(fd_text), "%d", board_fd);
	char *const args[] = { self, (char *)"process", (char *)(uintptr_t)role, fd_text, NULL };
	return stage_spawn(&stage, tenant, args);
}

/* True when it has ended well; one that has not in time is killed. */
static bool ends_well(pid_t pid, uint64_t deadline_ns)
{
	int status = 0;

	while (waitpid(pid, &status, WNOHANG) == 0) {
		if (now_ns() > deadline_ns) {
			kill_and_wait(pid);
			return false;
		}
		sleep_ms(5);
	}
	return status == 0;
}

static void begin_case(void)
{
	board->done = board->peer_done = board->recorded = board->has_handle = 0;
	board->longest_ns = 0;
	memset((void *)(uintptr_t)board->word, 0, sizeof(board->word));
	board->figures[BY_SATURATOR].longest_ns = 0;
}

/* One or two processes; the second may be another tenant's. */
static void run_case(const char *name, const struct stage_tenant *tenant, const char *role,
		     const struct stage_tenant *second_tenant, const char *second_role)
{
	begin_case();
	uint64_t begin = now_ns(), deadline = begin + PATIENCE_S * 1000000000ULL;
	uint64_t launches = board->figures[BY_SATURATOR].launches;
	pid_t first = start(tenant, role),
	      second = second_role ? start(second_tenant, second_role) : 0;
	bool is_ended = ends_well(first, deadline);
	if (second)
		is_ended = ends_well(second, deadline) && is_ended;
	double took_s = (double)(now_ns() - begin) / 1e9;
	launches = board->figures[BY_SATURATOR].launches - launches;
	char text[64];
	snprintf(text, sizeof(text), "forward_progress.%s", name);
	bar(text, is_ended && board->done == board->times && launches > 0,
	    "%u of %u ended in %.1f s, the longest took %.0f ms; beside it %.0f kernels of 1 ms a "
	    "second, "
	    "its longest launch %.0f ms",
	    (unsigned)board->done, board->times, took_s, (double)board->longest_ns / 1e6,
	    (double)launches / took_s, (double)board->figures[BY_SATURATOR].longest_ns / 1e6);
}

/* Waits until `launches` has grown by `more`. Returns the time that it took, or 0 if it did not within 10 s. */
static uint64_t time_of_launches(const struct load_figures *figures, uint64_t more)
{
	uint64_t begin = now_ns(), before = figures->launches;
	while (figures->launches < before + more)
		if (now_ns() - begin > 10000000000ULL)
			return 0;
		else
			usleep(500);
	return now_ns() - begin;
}

/*
 * A process is stopped at any moment, half of the time with the lease. The other tenant must have the card meanwhile, and the
 * process must go on when it is continued.
 */
static void run_stopped(const struct stage_tenant *tenant)
{
	struct load_figures *own = &board->figures[BY_SUBJECT],
			    *other = &board->figures[BY_SATURATOR];
	uint64_t random = 99, longest_ns = 0, longest_other_ns = 0;
	unsigned continued = 0, shared = 0;

	begin_case();
	memset(own, 0, sizeof(*own));
	pid_t pid = start(tenant, "subject");
	while (!own->runs)
		sleep_ms(5);
	for (unsigned n = 0; n < board->times; n++) {
		usleep((useconds_t)(random_of(&random) % 60000));
		kill(pid, SIGSTOP);
		uint64_t took_ns = time_of_launches(other, STOPPED_LAUNCHES);
		shared += took_ns != 0;
		longest_other_ns = took_ns > longest_other_ns ? took_ns : longest_other_ns;
		kill(pid, SIGCONT);
		took_ns = time_of_launches(own, 1);
		continued += took_ns != 0;
		longest_ns = took_ns > longest_ns ? took_ns : longest_ns;
	}
	own->stop = true;
	bool is_ended = ends_well(pid, now_ns() + 10000000000ULL);
	bar("forward_progress.stopped_holder",
	    is_ended && continued == board->times && shared == board->times,
	    "%u of %u went on, after %.0f ms at most; in %u of these stops the other tenant launched "
	    "%u kernels of 1 ms, in %.0f ms at most",
	    continued, board->times, (double)longest_ns / 1e6, shared, STOPPED_LAUNCHES,
	    (double)longest_other_ns / 1e6);
}

int main(int argc, char **argv)
{
	self = argv[0];
	if (argc == 4 && !strcmp(argv[1], "process"))
		return be_process(argv);
	stage_start(&stage, "memory = 16 GiB\ncontext = 64 MiB\n", "");
	board = shared_board(sizeof(*board), &board_fd);
	board->times = argc == 3 && !strcmp(argv[1], "--times") ? (unsigned)atoi(argv[2]) : 100;
	if (board->times > 1024)
		give_up("--times: 1024 at most");
	struct stage_tenant *subject_tenant = stage_add_tenant(&stage, "subject", GIB, 40, 100);
	struct stage_tenant *peer = stage_add_tenant(&stage, "peer", GIB, 20, 100);
	struct stage_tenant *other = stage_add_tenant(&stage, "saturator", GIB, 40, 100);
	pid_t pid = start(other, "saturator");
	while (!board->figures[BY_SATURATOR].runs)
		sleep_ms(5);

	run_case("wait_value", subject_tenant, "wait_value", NULL, NULL);
	run_case("host_lock", subject_tenant, "host_lock", NULL, NULL);
	run_case("persistent", subject_tenant, "persistent", NULL, NULL);
	run_case("ranks", subject_tenant, "rank_first", subject_tenant, "rank_second");
	run_case("ipc_event", subject_tenant, "ipc_producer", peer, "ipc_consumer");
	run_stopped(subject_tenant);

	kill_and_wait(pid);
	stage_stop(&stage);
	return bar_status();
}
