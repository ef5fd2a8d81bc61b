#include "daemon/tasks/violation/suspects.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/log.h"
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

static void note_failure(struct violations *v, int pid, int r)
{
	if (r == -ESRCH || v->is_unread_logged)
		return;
	v->is_unread_logged = true;
	log_warning("process %d uses a GPU and can't be checked for violations: %s (logged once)",
		    pid, r == -ENOSPC ? "too many processes are being checked" : strerror(-r));
}

struct suspect *suspects_get(struct violations *v, int pid)
{
	uint64_t start_time;
	struct suspect *s = suspects_find(v, pid);
	/* process_ended() removes a watched suspect when its process ends, so this is still the same process. */
	if (s && s->source)
		return s;
	int r = procfs_start_time(pid, &start_time);
	if (r >= 0 && s && s->start_time == start_time)
		return s;
	if (s && (r >= 0 || r == -ESRCH))
		suspects_remove(s);
	if (r >= 0)
		r = v->count < SUSPECTS_MOST ? 0 : -ENOSPC;
	s = r >= 0 ? calloc(1, sizeof(*s)) : NULL;
	if (!s) {
		note_failure(v, pid, r < 0 ? r : -ENOMEM);
		return NULL;
	}
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
	offenders_resume(s, NULL);
	suspects_remove(s);
	offenders_write_list(v);
}

int suspects_watch(struct suspect *s)
{
	if (s->source)
		return 0;
	int r = procfs_open_process(s->pid, s->start_time, &s->pidfd);
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
