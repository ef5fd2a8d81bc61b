#include "daemon/tasks/freezer/watchdog.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/child.h"
#include "base/cleanup.h"

#define FILE_MAX (CGROUP_DIR_MAX + 16)
#define ANSWER_MS 1000

struct watchdog {
	int fd, pidfd;
	pid_t pid;
};

/* A message to the child: add or remove a cgroup. The child answers an addition with one byte. */
struct note {
	bool add;
	char text[8];        /* text that thaws the cgroup */
	char file[FILE_MAX]; /* file to which `text` is written */
};

/* The child's list of frozen cgroups. The child makes only async-signal-safe calls, because the daemon may have threads. */
static struct note known[WATCHDOG_MAX];
static unsigned known_count;

static unsigned find(const char *file)
{
	unsigned i = 0;
	while (i < known_count && strcmp(known[i].file, file) != 0)
		i++;
	return i;
}

static char take_note(const struct note *n)
{
	unsigned i = find(n->file);
	if (!n->add) {
		if (i < known_count)
			known[i] = known[--known_count];
		return 1;
	}
	if (i == WATCHDOG_MAX)
		return 0;
	if (i == known_count)
		known[known_count++] = *n;
	return 1;
}

static _Noreturn void live(int fd)
{
	static const int ignored[] = { SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGPIPE, SIGTSTP };
	static struct note note;
	setsid();
	for (size_t i = 0; i < sizeof(ignored) / sizeof(ignored[0]); i++)
		signal(ignored[i], SIG_IGN);
	prctl(PR_SET_NAME, "allot-thaw");
	child_close_others(fd);
	for (;;) {
		ssize_t n = recv(fd, &note, sizeof(note), 0);
		if (n < 0 && errno == EINTR)
			continue;
		if (n != (ssize_t)sizeof(note))
			break;
		note.file[sizeof(note.file) - 1] = note.text[sizeof(note.text) - 1] = '\0';
		char answer = take_note(&note);
		if (note.add && send(fd, &answer, 1, MSG_NOSIGNAL) < 0)
			break;
	}
	for (unsigned i = 0; i < known_count; i++) {
		int file = open(known[i].file, O_WRONLY | O_CLOEXEC);
		ssize_t n = file < 0 ? 0 : write(file, known[i].text, strlen(known[i].text));
		(void)n; /* a failure means that the cgroup is gone */
		if (file >= 0)
			close(file);
	}
	_exit(0);
}

int watchdog_start(struct watchdog **ret, struct error *err)
{
	struct watchdog *w = malloc(sizeof(*w));
	int fds[2];
	if (!w)
		return error_set_errno(err, ENOMEM, "watchdog");
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds) < 0) {
		free(w);
		return error_set_errno(err, errno, "watchdog's socket");
	}
	*w = (struct watchdog){ .fd = fds[0], .pidfd = -1 };
	w->pid = fork();
	if (w->pid == 0)
		live(fds[1]);
	close(fds[1]);
	if (w->pid > 0)
		w->pidfd = (int)syscall(SYS_pidfd_open, w->pid, 0);
	if (w->pidfd < 0) {
		int e = errno;
		watchdog_stop(w);
		return error_set_errno(err, e, "watchdog");
	}
	fcntl(w->pidfd, F_SETFD, FD_CLOEXEC);
	*ret = w;
	return 0;
}

struct watchdog *watchdog_stop(struct watchdog *w)
{
	if (!w)
		return NULL;
	close_fd(&w->fd);
	if (w->pidfd >= 0) /* a stopped child could not end */
		syscall(SYS_pidfd_send_signal, w->pidfd, SIGCONT, NULL, 0);
	close_fd(&w->pidfd);
	if (w->pid > 0)
		while (waitpid(w->pid, NULL, 0) < 0 && errno == EINTR)
			;
	free(w);
	return NULL;
}

int watchdog_pidfd(const struct watchdog *w)
{
	return w->pidfd;
}

/* Ends a child that does not answer: a late answer would be taken for the answer to the next note. */
static void kill_child(struct watchdog *w)
{
	shutdown(w->fd, SHUT_RDWR);
	syscall(SYS_pidfd_send_signal, w->pidfd, SIGKILL, NULL, 0);
}

static int send_note(struct watchdog *w, const struct cgroup *cgroup, bool add)
{
	struct note note = { .add = add };
	const char *text;
	cgroup_thaw_file(cgroup, note.file, &text);
	strcpy(note.text, text);
	if (send(w->fd, &note, sizeof(note), MSG_NOSIGNAL | MSG_DONTWAIT) >= 0)
		return 0;
	int r = -errno;
	if (r == -EAGAIN) /* the child is stopped and reads no notes */
		kill_child(w);
	/* ECONNRESET: the child ended before it read the last note. */
	return r == -EAGAIN || r == -ECONNRESET ? -EPIPE : r;
}

int watchdog_add(struct watchdog *w, const struct cgroup *cgroup)
{
	struct pollfd p = { .fd = w->fd, .events = POLLIN };
	char answer = 0;
	int r = send_note(w, cgroup, true);
	if (r < 0)
		return r;
	if (poll(&p, 1, ANSWER_MS) <= 0 || recv(w->fd, &answer, 1, 0) != 1) {
		kill_child(w);
		return -EPIPE;
	}
	return answer ? 0 : -ENOSPC;
}

void watchdog_remove(struct watchdog *w, const struct cgroup *cgroup)
{
	send_note(w, cgroup, false);
}
