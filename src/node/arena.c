#include "node/arena.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/log.h"

#define STEP_BYTES (UINT64_C(64) << 20)
#define BUDGET_PART 2 /* of the machine's memory */

struct arena {
	int fd;
	uint64_t bytes;
	struct region_control *control;
	pthread_t thread;
	_Atomic bool stop, is_short;
};

/* A line of /proc/meminfo, in bytes; 0: it is not there. */
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
			 "swap_arena_bytes %" PRIu64 ": the machine has %" PRIu64
			 " bytes of memory available",
			 bytes, available);
}

/* fallocate, not a touch: short of memory it fails, where a touch would be killed for. */
static void *back(void *data)
{
	struct arena *a = data;
	prctl(PR_SET_NAME, "allot-arena");
	for (uint64_t at = 0; at < a->bytes && !atomic_load(&a->stop);) {
		uint64_t n = a->bytes - at < STEP_BYTES ? a->bytes - at : STEP_BYTES;
		if (fallocate(a->fd, 0, (off_t)at, (off_t)n) < 0) {
			if (errno == EINTR)
				continue;
			log_error("swap arena: only %" PRIu64 " of %" PRIu64 " bytes: %s", at,
				  a->bytes, strerror(errno));
			atomic_store(&a->is_short, true);
			break;
		}
		at += n;
		atomic_store(&a->control->arena_ready_bytes, at);
	}
	return NULL;
}

int arena_new(uint64_t bytes, struct region_control *control, struct arena **ret, struct error *err)
{
	cleanup_free struct arena *a = calloc(1, sizeof(*a));
	if (!a)
		return error_set_errno(err, ENOMEM, "swap arena");
	cleanup_fd int fd = memfd_create("allot-arena", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (fd < 0 || ftruncate(fd, (off_t)bytes) < 0 ||
	    fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) < 0)
		return error_set_errno(err, errno, "swap arena of %" PRIu64 " bytes", bytes);
	a->fd = fd;
	a->bytes = bytes;
	a->control = control;
	control->arena_bytes = bytes;
	int e = pthread_create(&a->thread, NULL, back, a);
	if (e) {
		control->arena_bytes = 0;
		return error_set_errno(err, e, "swap arena");
	}
	(void)steal_fd(&fd);
	*ret = steal_pointer(&a);
	return 0;
}

struct arena *arena_free(struct arena *a)
{
	if (!a)
		return NULL;
	atomic_store(&a->stop, true);
	pthread_join(a->thread, NULL);
	close(a->fd);
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
