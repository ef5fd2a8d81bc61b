#include "daemon/tasks/violation/suspects.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "daemon/util/procfs.h"

struct suspect *suspects_find(const struct violations *v, int pid)
{
	struct suspect *s;
	TAILQ_FOREACH(s, &v->list, link)
		if (s->pid == pid)
			return s;
	return NULL;
}

struct suspect *suspects_get(struct violations *v, int pid)
{
	uint64_t start_time;
	struct suspect *s = suspects_find(v, pid);
	/* With an open pidfd this is still the same process: its pid cannot have been reused. */
	if (s && s->source)
		return s;
	if (procfs_start_time(pid, &start_time) < 0)
		return NULL;
	if (s && s->start_time == start_time)
		return s;
	if (s)
		suspects_remove(s);
	if (v->count >= SUSPECTS_MOST)
		return NULL;
	s = calloc(1, sizeof(*s));
	if (!s)
		return NULL;
	*s = (struct suspect){ .violations = v, .pid = pid, .start_time = start_time, .pidfd = -1 };
	if (procfs_read(pid, "comm", s->name, sizeof(s->name)) > 0)
		s->name[strcspn(s->name, "\n")] = '\0';
	text_clean(s->name);
	s->is_ours = pid == getpid() || procfs_is_same_program(pid);
	TAILQ_INSERT_TAIL(&v->list, s, link);
	v->count++;
	return s;
}

static void process_ended(void *data, uint32_t events)
{
	struct suspect *s = data;
	struct violations *v = s->violations;
	offenders_resume(s);
	suspects_remove(s);
	offenders_write_list(v);
}

int suspects_watch(struct suspect *s)
{
	uint64_t start_time;
	if (s->source)
		return 0;
	s->pidfd = (int)syscall(SYS_pidfd_open, s->pid, 0);
	if (s->pidfd < 0)
		return -errno;
	fcntl(s->pidfd, F_SETFD, FD_CLOEXEC);
	/* If the start time differs, the pid was reused before the pidfd was opened. */
	int r = procfs_start_time(s->pid, &start_time);
	if (r >= 0 && start_time != s->start_time)
		r = -ESRCH;
	if (r >= 0)
		r = loop_add(s->violations->node->loop, s->pidfd, EPOLLIN, process_ended, s,
			     &s->source);
	if (r < 0)
		close_fd(&s->pidfd);
	return r;
}

void suspects_remove(struct suspect *s)
{
	TAILQ_REMOVE(&s->violations->list, s, link);
	s->violations->count--;
	loop_remove(s->source);
	close_fd(&s->pidfd);
	free(s);
}
