#include "node/violation/stopped_list.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "node/procfs.h"

#define PATH_SIZE 256

int stopped_list_write(const char *run_dir, const struct stopped_process *list, size_t count)
{
	char path[PATH_SIZE], fresh[PATH_SIZE + 8];
	snprintf(path, sizeof(path), "%s/stopped", run_dir);
	snprintf(fresh, sizeof(fresh), "%s.new", path);
	if (count == 0)
		return unlink(path) < 0 && errno != ENOENT ? -errno : 0;
	FILE *f = fopen(fresh, "we");
	if (!f)
		return -errno;
	for (size_t i = 0; i < count; i++)
		fprintf(f, "%d %" PRIu64 "\n", list[i].pid, list[i].start_time);
	/* Not synced: after a crash of the machine nothing is stopped. */
	bool bad = ferror(f);
	bad |= fclose(f) != 0;
	if (bad || rename(fresh, path) < 0) {
		int r = bad ? -EIO : -errno;
		unlink(fresh);
		return r;
	}
	return 0;
}

static bool continue_process(const struct stopped_process *p)
{
	uint64_t start_time;
	cleanup_fd int pidfd = (int)syscall(SYS_pidfd_open, p->pid, 0);
	/* Read after the pidfd was opened: it stands for this very process, or for none. */
	return pidfd >= 0 && procfs_start_time(p->pid, &start_time) >= 0 &&
	       start_time == p->start_time &&
	       syscall(SYS_pidfd_send_signal, pidfd, SIGCONT, NULL, 0) == 0;
}

unsigned stopped_list_continue(const char *run_dir)
{
	char path[PATH_SIZE], line[64];
	unsigned count = 0;
	snprintf(path, sizeof(path), "%s/stopped", run_dir);
	cleanup_file FILE *f = fopen(path, "re");
	while (f && fgets(line, sizeof(line), f)) {
		struct stopped_process p;
		if (sscanf(line, "%d %" SCNu64, &p.pid, &p.start_time) == 2 && p.pid > 1)
			count += continue_process(&p);
	}
	unlink(path);
	return count;
}
