#include "daemon/memory/checkpoint/checkpoint_helper.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"
#include "daemon/gpu/nvml/gpu.h"
#include "daemon/memory/checkpoint/helper_file.h"
#include "daemon/memory/checkpoint/checkpoint_steps.h"
#include "daemon/util/procfs.h"

#define MIB (UINT64_C(1) << 20)
#define ROOM_POLL_NS (50 * NSEC_PER_MSEC)
/* Like ROOM_POLL_NS, but after the daemon has ended. Longer, because the daemon no longer makes room on the GPUs. */
#define ORPHAN_POLL_NS (200 * NSEC_PER_MSEC)

struct helper {
	const char *cuda, *nvml, *path;
	int file; /* the helper's file (helper_file.h); -1: not opened yet */
	struct checkpoint_driver *driver;
	const struct gpu_backend *backend;
	struct gpu *gpu;
	struct helper_order order;
	enum checkpoint_state state[HELPER_MAX_PROCESSES];
	bool is_replaced; /* another helper takes over */
};

static int open_driver(struct helper *k, struct error *err)
{
	return k->driver ? 0 : checkpoint_driver_open(k->cuda, &k->driver, err);
}

static void read_states(struct helper *k)
{
	for (unsigned i = 0; i < k->order.process_count; i++) {
		const struct helper_process *p = &k->order.process[i];
		uint64_t start_time;
		k->state[i] = CHECKPOINT_GONE;
		int r = procfs_start_time(p->pid, &start_time);
		if (r != -ESRCH && (r < 0 || start_time == p->start_time))
			k->state[i] = checkpoint_driver_state(k->driver, p->pid);
	}
}

static const struct helper_process *find_by_state(const struct helper *k,
						  enum checkpoint_state state)
{
	for (unsigned i = 0; i < k->order.process_count; i++)
		if (k->state[i] == state)
			return &k->order.process[i];
	return NULL;
}

/* Stops at the goal or when a step fails. A process that dies is no failure. */
static int run_steps(struct helper *k, enum checkpoint_goal goal, struct error *err)
{
	size_t count = k->order.process_count;
	for (size_t i = 0; i <= checkpoint_most_steps(count) + count; i++) {
		struct error failure = { 0 };
		read_states(k);
		struct checkpoint_next next = checkpoint_next(goal, k->state, count);
		if (next.step == CHECKPOINT_NOTHING) {
			const struct helper_process *failed = find_by_state(k, CHECKPOINT_FAILED);
			if (!failed)
				return 0;
			return error_set(err, EIO,
					 "the driver reports that process %d has failed for "
					 "good: end that process",
					 failed->pid);
		}
		int r = checkpoint_driver_do(k->driver, next.step, k->order.process[next.index].pid,
					     k->order.lock_ms, &failure);
		if (r >= 0)
			continue;
		read_states(k);
		if (k->state[next.index] != CHECKPOINT_GONE)
			return error_set(err, -r, "%s", failure.text);
	}
	return error_set(err, EIO,
			 "the driver reports that it moved GPU memory, but the state of the "
			 "processes did not change");
}

static int open_nvml(struct helper *k, struct error *err)
{
	if (k->gpu)
		return 0;
	k->backend = gpu_backend_find("nvml");
	return k->backend->open(k->nvml, &k->gpu, err);
}

/* Call just before a restore: without room on the GPUs, a real driver leaves the process stuck for good. */
static int check_room(struct helper *k, struct error *err)
{
	int r = open_nvml(k, err);
	for (unsigned i = 0; r >= 0 && i < HELPER_MAX_CARDS; i++) {
		struct gpu_info info;
		struct gpu_memory memory;
		if (!k->order.bytes[i])
			continue;
		r = k->backend->info(k->gpu, i, &info, err);
		if (r >= 0)
			r = k->backend->memory(k->gpu, i, &memory, err);
		if (r < 0)
			break;
		uint64_t room = info.memory_bytes > memory.used_bytes
					? info.memory_bytes - memory.used_bytes
					: 0;
		if (k->order.bytes[i] > room)
			return error_set(err, ENOMEM,
					 "GPU %u has %" PRIu64
					 " MiB free, and the moved memory needs %" PRIu64
					 " MiB: free memory of this GPU, then try again",
					 i, room / MIB, k->order.bytes[i] / MIB);
	}
	return r;
}

/* Returns true at once if another helper sends SIGTERM, to take over. */
static bool sleep_or_sigterm(uint64_t ns)
{
	struct timespec ts = clock_to_timespec(ns);
	sigset_t set;
	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	return sigtimedwait(&set, NULL, &ts) == SIGTERM;
}

static int lock_file(struct helper *k, struct error *err)
{
	int r = k->file >= 0 ? 0 : helper_file_lock(k->path, &k->file, err);
	if (r < 0)
		return r;
	r = helper_file_write(k->file, &k->order);
	return r < 0 ? error_set_errno(err, -r, "%s", k->path) : 0;
}

static enum helper_result checkpoint_all(struct helper *k, struct error *err)
{
	struct error back = { 0 };
	int r = open_driver(k, err);
	if (r >= 0)
		r = lock_file(k, err);
	if (r < 0)
		return HELPER_UNTRIED;
	r = run_steps(k, CHECKPOINT_OUT, err);
	if (r >= 0 && find_by_state(k, CHECKPOINT_SAVED))
		return HELPER_DONE;
	if (r >= 0)
		error_set(err, ESRCH,
			  "there is no GPU memory to move: none of the container's or tenant's "
			  "processes uses CUDA");
	/* Undo the order. The GPU has room, because the daemon does not give the memory away before the processes have left. */
	if (run_steps(k, CHECKPOINT_IN, &back) >= 0)
		return HELPER_NOT;
	error_add(&back, 0, "%.150s; moving back failed too", err->text);
	*err = back;
	return HELPER_STUCK;
}

static enum helper_result restore_all(struct helper *k, struct error *err)
{
	uint64_t until_ns = clock_now_ns() + k->order.room_ms * NSEC_PER_MSEC;
	struct error out = { 0 };
	int r = open_driver(k, err);
	if (r >= 0)
		r = lock_file(k, err);
	if (r < 0)
		return HELPER_UNTRIED;
	read_states(k);
	if (find_by_state(k, CHECKPOINT_SAVED)) {
		while ((r = check_room(k, err)) == -ENOMEM && clock_now_ns() < until_ns &&
		       !k->is_replaced)
			k->is_replaced = sleep_or_sigterm(ROOM_POLL_NS);
		if (r < 0)
			return find_by_state(k, CHECKPOINT_RUNNING) ||
					       find_by_state(k, CHECKPOINT_LOCKED)
				       ? HELPER_STUCK
				       : HELPER_NOT;
	}
	if (run_steps(k, CHECKPOINT_IN, err) >= 0)
		return HELPER_DONE;
	/* Undo the order if no process runs yet. */
	if (!find_by_state(k, CHECKPOINT_RUNNING) && run_steps(k, CHECKPOINT_OUT, &out) >= 0)
		return HELPER_NOT;
	return HELPER_STUCK;
}

static void execute_order(struct helper *k, int fd)
{
	struct helper_answer answer = { .result = HELPER_DONE };
	struct error err = { 0 };
	answer.result = k->order.goal == CHECKPOINT_OUT ? checkpoint_all(k, &err)
							: restore_all(k, &err);
	if (answer.result != HELPER_DONE)
		snprintf(answer.text, sizeof(answer.text), "%.*s", HELPER_TEXT_MAX - 1, err.text);
	if (send(fd, &answer, sizeof(answer), MSG_NOSIGNAL) < 0)
		log_debug("the helper can't send its answer to the daemon: %s", strerror(errno));
}

static int first_away(const struct helper *k)
{
	const struct helper_process *p = find_by_state(k, CHECKPOINT_SAVED);
	if (!p)
		p = find_by_state(k, CHECKPOINT_LOCKED);
	return p ? p->pid : 0;
}

/* After the daemon has ended: brings all processes back once there is room. Ends early if another helper takes over. */
static void restore_orphans(struct helper *k)
{
	struct error err = { 0 };
	char logged_text[ERROR_TEXT_MAX] = "";
	if (k->file < 0 || k->is_replaced || open_driver(k, &err) < 0)
		return;
	for (;;) {
		int r = 0;
		read_states(k);
		if (find_by_state(k, CHECKPOINT_SAVED))
			r = check_room(k, &err);
		if (r >= 0)
			r = run_steps(k, CHECKPOINT_IN, &err);
		if (r >= 0 ||
		    !(find_by_state(k, CHECKPOINT_SAVED) || find_by_state(k, CHECKPOINT_LOCKED)))
			break;
		if (strcmp(logged_text, err.text) != 0)
			log_warning("process %d: its GPU memory, which was moved to host memory, "
				    "can't come back yet: %s; trying again",
				    first_away(k), err.text);
		strcpy(logged_text, err.text);
		if (sleep_or_sigterm(ORPHAN_POLL_NS))
			return;
	}
	unlink(k->path);
}

/* Ignores signals that end a daemon. Blocks SIGTERM; only sleep_or_sigterm() takes it. Call before a library starts threads. */
static void set_signals(void)
{
	static const int ignored[] = { SIGINT, SIGHUP, SIGQUIT, SIGPIPE, SIGTSTP };
	sigset_t set;
	for (size_t i = 0; i < sizeof(ignored) / sizeof(ignored[0]); i++)
		signal(ignored[i], SIG_IGN);
	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigprocmask(SIG_SETMASK, &set, NULL);
}

static int recover(struct helper *k)
{
	struct error err = { 0 };
	int r = helper_file_lock(k->path, &k->file, &err);
	if (r >= 0 && (r = helper_file_read(k->file, &k->order)) < 0)
		error_set_errno(&err, -r, "read %s", k->path);
	if (r >= 0 && (r = helper_file_write(k->file, &k->order)) < 0)
		error_set_errno(&err, -r, "write %s", k->path);
	if (r < 0) {
		log_error("processes whose GPU memory is in host memory stay stopped: their list "
			  "can't be taken over: %s; fix that, then restart allotd",
			  err.text);
		return 1;
	}
	restore_orphans(k);
	return 0;
}

static bool is_sound(const struct helper_order *order, ssize_t size)
{
	return size == (ssize_t)sizeof(*order) && order->process_count <= HELPER_MAX_PROCESSES &&
	       order->goal <= CHECKPOINT_OUT;
}

int checkpoint_helper_main(int argc, char **argv)
{
	static struct helper k; /* static, because it is large */
	if (argc < 5) {
		fputs("allotd: " HELPER_OPTION " is for the daemon itself\n", stderr);
		return 1;
	}
	log_init("allot-checkpoint");
	set_signals();
	prctl(PR_SET_NAME, "allot-checkpt", 0, 0, 0);
	/* Inherited from the daemon, this variable would hide GPUs from the driver. */
	unsetenv("CUDA_VISIBLE_DEVICES");
	k = (struct helper){ .cuda = argv[2], .nvml = argv[3], .path = argv[4], .file = -1 };
	if (argc > 5 && !strcmp(argv[5], HELPER_RECOVER))
		return recover(&k);
	for (;;) {
		ssize_t n = recv(HELPER_FD, &k.order, sizeof(k.order), 0);
		if (n < 0 && errno == EINTR)
			continue;
		if (!is_sound(&k.order, n))
			break;
		execute_order(&k, HELPER_FD);
	}
	restore_orphans(&k);
	return 0;
}
