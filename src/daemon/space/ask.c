#include "daemon/space/ask.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"

struct mps_ask {
	struct loop *loop;
	struct loop_source *source, *timer;
	int fd; /* reads the tool's output */
	pid_t pid;
	mps_answered answered;
	void *data;
	size_t length;
	char text[MPS_ANSWER_MAX];
};

/* Returns the tool's exit status. Does not wait for long: the tool has closed its output, or is killed here. */
static int reap(struct mps_ask *ask, bool is_killed)
{
	int status = 0;
	if (is_killed)
		kill(ask->pid, SIGKILL);
	while (waitpid(ask->pid, &status, 0) < 0)
		if (errno != EINTR)
			return -errno;
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static void free_command(struct mps_ask *ask)
{
	loop_remove(ask->source);
	loop_remove(ask->timer);
	close_fd(&ask->fd);
	free(ask);
}

static void end(struct mps_ask *ask, bool is_late)
{
	char text[MPS_ANSWER_MAX];
	mps_answered answered = ask->answered;
	void *data = ask->data;
	int status = reap(ask, is_late);
	ask->text[ask->length] = '\0';
	strcpy(text, ask->text);
	free_command(ask);
	answered(data, is_late ? -ETIMEDOUT : status, text);
}

static void heard(void *data, uint32_t events)
{
	struct mps_ask *ask = data;
	char rest[256];
	bool is_full = ask->length == sizeof(ask->text) - 1;
	/* Read and drop output that does not fit, so that the tool is not blocked. */
	ssize_t n = read(ask->fd, is_full ? rest : ask->text + ask->length,
			 is_full ? sizeof(rest) : sizeof(ask->text) - 1 - ask->length);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n > 0) {
		ask->length += is_full ? 0 : (size_t)n;
		return;
	}
	end(ask, false);
}

static void late(void *data, uint32_t events)
{
	end(data, true);
}

/* Makes a pipe that contains the whole command, for the tool's stdin. */
static int make_input(const char *command, int *ret_fd)
{
	int fds[2];
	size_t length = strlen(command);
	if (pipe2(fds, O_CLOEXEC) < 0)
		return -errno;
	bool is_written = write(fds[1], command, length) == (ssize_t)length &&
			  write(fds[1], "\n", 1) == 1;
	close(fds[1]);
	if (!is_written) {
		close(fds[0]);
		return -EIO;
	}
	*ret_fd = fds[0];
	return 0;
}

int mps_ask(struct loop *loop, const struct mps_spawn *spawn, const char *command,
	    uint64_t timeout_ns, mps_answered answered, void *data, struct mps_ask **ret,
	    struct error *err)
{
	cleanup_fd int in_fd = -1, out_fd = -1;
	struct mps_spawn s = *spawn;
	int fds[2];
	struct mps_ask *ask = calloc(1, sizeof(*ask));
	if (!ask)
		return error_set_errno(err, ENOMEM, MPS_PROGRAM);
	*ask = (struct mps_ask){ .loop = loop, .fd = -1, .answered = answered, .data = data };
	int r = make_input(command, &in_fd);
	if (r >= 0 && pipe2(fds, O_CLOEXEC) < 0)
		r = -errno;
	if (r < 0) {
		free(ask);
		return error_set_errno(err, -r, MPS_PROGRAM ": pipe");
	}
	ask->fd = fds[0];
	fcntl(ask->fd, F_SETFL, O_NONBLOCK);
	out_fd = fds[1];
	s.argument = NULL;
	s.is_detached = false;
	s.in_fd = in_fd;
	s.out_fd = out_fd;
	r = loop_add(loop, ask->fd, EPOLLIN, heard, ask, &ask->source);
	if (r >= 0)
		r = loop_add_timer(loop, late, ask, &ask->timer);
	if (r < 0)
		error_set_errno(err, -r, MPS_PROGRAM);
	else
		r = ask->pid = mps_spawn(&s, err);
	if (r < 0) {
		free_command(ask);
		return r;
	}
	loop_arm(ask->timer, timeout_ns, 0);
	*ret = ask;
	return 0;
}

struct mps_ask *mps_ask_free(struct mps_ask *ask)
{
	if (!ask)
		return NULL;
	reap(ask, true);
	free_command(ask);
	return NULL;
}
