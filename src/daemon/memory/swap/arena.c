#include "daemon/memory/swap/arena.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/child.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "base/text.h"
#include "daemon/util/memory_cgroup.h"

#define STEP_BYTES (UINT64_C(64) << 20)
/* If the arena is charged to a tenant's cgroup, this much of the cgroup's limit is left to the tenant's processes. */
#define SPARED_BYTES (UINT64_C(64) << 20)
/* By default, all arenas together get half of the machine's memory. */
#define BUDGET_PART 2

struct arena {
	int fd;
	uint64_t bytes;
	struct region_control *control;
	bool is_tenants, has_thread;
	pthread_t thread;
	_Atomic bool stop, is_short, has_ended;
	/* The tenant's cgroup, if it is charged for the arena. */
	struct memory_cgroup cgroup;
	char tenant[REGION_NAME_MAX + 16]; /* the tenant's name, for the log; "": unknown */
	_Atomic pid_t child;               /* the child that allocates the file's pages; 0: none */
};

/* The value in bytes; 0 if /proc/meminfo lacks it. */
static uint64_t read_meminfo(const char *key)
{
	cleanup_file FILE *file = fopen("/proc/meminfo", "re");
	char line[128];
	size_t length = strlen(key);
	while (file && fgets(line, sizeof(line), file))
		if (!strncmp(line, key, length) && line[length] == ':')
			return strtoull(line + length + 1, NULL, 10) * 1024;
	return 0;
}

uint64_t arena_default_budget(void)
{
	return read_meminfo("MemTotal") / BUDGET_PART;
}

int arena_check_memory(uint64_t bytes, uint64_t pending_bytes, struct error *err)
{
	uint64_t available = read_meminfo("MemAvailable");
	available = available > pending_bytes ? available - pending_bytes : 0;
	if (bytes <= available)
		return 0;
	return error_set(err, ENOSPC,
			 "needs %s of host memory, and %s are available: free host memory, then "
			 "try again",
			 amount(bytes).text, amount(available).text);
}

/* If memory is short, fallocate() fails, but a write would kill the process. Only system calls: a forked child runs this. */
static int populate(struct arena *a, const struct memory_cgroup *cgroup)
{
	for (uint64_t at = atomic_load(&a->control->arena_ready_bytes);
	     at < a->bytes && !atomic_load(&a->stop);) {
		uint64_t n = a->bytes - at < STEP_BYTES ? a->bytes - at : STEP_BYTES;
		if (cgroup && memory_cgroup_free_bytes(cgroup) < n + SPARED_BYTES)
			return ENOMEM;
		if (fallocate(a->fd, 0, (off_t)at, (off_t)n) < 0) {
			if (errno == EINTR)
				continue;
			return errno;
		}
		at += n;
		atomic_store(&a->control->arena_ready_bytes, at);
	}
	return 0;
}

static void log_short(struct arena *a, const char *context, const char *why)
{
	log_error("%sswap arena: only %s of %s of host memory could be reserved: %s%s; GPU memory "
		  "that finds no room there stays on the GPU",
		  a->tenant, amount(atomic_load(&a->control->arena_ready_bytes)).text,
		  amount(a->bytes).text, context, why);
	atomic_store(&a->is_short, true);
}

static void *populate_here(void *data)
{
	struct arena *a = data;
	prctl(PR_SET_NAME, "allot-arena");
	int e = populate(a, NULL);
	if (e)
		log_short(a, "", strerror(e));
	atomic_store(&a->has_ended, true);
	return NULL;
}

/* The child has the highest OOM score, so the kernel kills it instead of a process of the tenant. */
static _Noreturn void populate_as_child(struct arena *a)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	child_close_others(a->fd);
	int e, score = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
	if (score < 0 || write(score, "1000", 4) < 0)
		_exit(errno);
	e = -memory_cgroup_join(&a->cgroup);
	_exit(e ? e : populate(a, &a->cgroup));
}

/* The kernel charges the cgroup of the process that allocates memory. So a child in the tenant's cgroup allocates the arena. */
static void *populate_in_cgroup(void *data)
{
	struct arena *a = data;
	char where[CGROUP_DIR_MAX + 32];
	int status = 0;
	prctl(PR_SET_NAME, "allot-arena");
	snprintf(where, sizeof(where), "memory cgroup %s: ", a->cgroup.dir);
	pid_t child = fork();
	if (child == 0)
		populate_as_child(a);
	if (child < 0) {
		log_short(a, where, strerror(errno));
		atomic_store(&a->has_ended, true);
		return NULL;
	}
	atomic_store(&a->child, child);
	/* If arena_free() set `stop` before a->child was stored, it could not kill the child. */
	if (atomic_load(&a->stop))
		kill(child, SIGKILL);
	while (waitpid(child, &status, 0) < 0 && errno == EINTR)
		;
	atomic_store(&a->child, 0);
	if (!atomic_load(&a->stop) && status)
		log_short(a, where, WIFEXITED(status) ? strerror(WEXITSTATUS(status)) : "killed");
	atomic_store(&a->has_ended, true);
	return NULL;
}

static int start(struct arena *a, void *(*run)(void *))
{
	atomic_store(&a->has_ended, false);
	atomic_store(&a->is_short, false);
	int e = pthread_create(&a->thread, NULL, run, a);
	a->has_thread = !e;
	return -e;
}

void arena_back(struct arena *a, int pid, const char *tenant)
{
	if (a->has_thread && !(atomic_load(&a->has_ended) && atomic_load(&a->is_short)))
		return;
	if (a->has_thread)
		pthread_join(a->thread, NULL);
	a->has_thread = false;
	snprintf(a->tenant, sizeof(a->tenant), "tenant '%s': ", tenant);
	int r = a->is_tenants ? memory_cgroup_of(pid, &a->cgroup) : 0;
	if (r < 0) {
		log_short(a, "can't charge the arena to the tenant's memory cgroup: ", strerror(-r));
		return;
	}
	r = start(a, a->is_tenants ? populate_in_cgroup : populate_here);
	if (r < 0)
		log_short(a, "", strerror(-r));
}

int arena_new(uint64_t bytes, struct region_control *control, bool is_tenants, struct arena **ret,
	      struct error *err)
{
	cleanup_free struct arena *a = calloc(1, sizeof(*a));
	if (!a)
		return error_set_errno(err, ENOMEM, "swap arena");
	cleanup_fd int fd = memfd_create("allot-arena", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (fd < 0 || ftruncate(fd, (off_t)bytes) < 0 ||
	    fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) < 0)
		return error_set_errno(err, errno, "swap arena of %s", amount(bytes).text);
	a->fd = fd;
	a->bytes = bytes;
	a->control = control;
	a->is_tenants = is_tenants;
	control->arena_bytes = bytes;
	(void)steal_fd(&fd);
	*ret = steal_pointer(&a);
	return 0;
}

static void *close_in_thread(void *data)
{
	prctl(PR_SET_NAME, "allot-arena");
	close((int)(intptr_t)data);
	return NULL;
}

/* Closing the last descriptor frees the pages, which takes seconds for many GiB. So a thread does it. */
static void close_async(int fd)
{
	pthread_t thread;
	if (pthread_create(&thread, NULL, close_in_thread, (void *)(intptr_t)fd) == 0)
		pthread_detach(thread);
	else
		close(fd);
}

struct arena *arena_free(struct arena *a)
{
	if (!a)
		return NULL;
	atomic_store(&a->stop, true);
	pid_t child = atomic_load(&a->child);
	if (child)
		kill(child, SIGKILL);
	if (a->has_thread)
		pthread_join(a->thread, NULL);
	close_async(a->fd);
	free(a);
	return NULL;
}

int arena_fd(const struct arena *a)
{
	return a->fd;
}

uint64_t arena_pending_bytes(struct arena *a)
{
	return atomic_load(&a->is_short) ? 0
					 : a->bytes - atomic_load(&a->control->arena_ready_bytes);
}
