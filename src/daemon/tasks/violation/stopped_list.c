#include "daemon/tasks/violation/stopped_list.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "daemon/util/procfs.h"
#include "daemon/util/whole_file.h"

#define PATH_SIZE 256
#define MOST_BYTES (1 << 20)

int stopped_list_write(const char *run_dir, const struct stopped_process *list, size_t count)
{
	char path[PATH_SIZE];
	cleanup_free char *lines = NULL;
	size_t size;
	FILE *f = open_memstream(&lines, &size);
	if (!f)
		return -ENOMEM;
	for (size_t i = 0; i < count; i++)
		fprintf(f, "%d %" PRIu64 "\n", list[i].pid, list[i].start_time);
	if (fclose(f) != 0)
		return -ENOMEM;
	snprintf(path, sizeof(path), "%s/stopped", run_dir);
	/* Not synced to disk: after a crash of the machine, no process is stopped. */
	return whole_file_write_lines(path, lines, false);
}

static bool continue_process(const struct stopped_process *p)
{
	cleanup_fd int pidfd = -1;
	return procfs_open_process(p->pid, p->start_time, &pidfd) >= 0 &&
	       syscall(SYS_pidfd_send_signal, pidfd, SIGCONT, NULL, 0) == 0;
}

static void continue_line(void *data, char *line)
{
	struct stopped_process p;
	if (sscanf(line, "%d %" SCNu64, &p.pid, &p.start_time) == 2 && p.pid > 1)
		*(unsigned *)data += continue_process(&p);
}

unsigned stopped_list_continue(const char *run_dir)
{
	char path[PATH_SIZE];
	unsigned count = 0;
	snprintf(path, sizeof(path), "%s/stopped", run_dir);
	whole_file_read_lines(path, MOST_BYTES, continue_line, &count);
	unlink(path);
	return count;
}
