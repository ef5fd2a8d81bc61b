#include "daemon/space/mps_command.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"

struct mps_command {
	struct loop *loop;
	struct loop_source *source, *timer;
	int fd; /* reads the output of the tool (MPS_PROGRAM); then the pidfd of the tool */
	pid_t pid;
	mps_command_done done;
	void *data;
	size_t length;
	char text[MPS_ANSWER_MAX];
};

/* Returns the exit status of the tool (MPS_PROGRAM). Does not wait long: the tool has ended, or is killed here. */
static int reap(struct mps_command *c, bool is_killed)
{
	int status = 0;
	if (is_killed)
		kill(c->pid, SIGKILL);
	while (waitpid(c->pid, &status, 0) < 0)
		if (errno != EINTR)
			return -errno;
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static void free_command(struct mps_command *c)
{
	loop_remove(c->source);
	loop_remove(c->timer);
	close_fd(&c->fd);
	free(c);
}

static void end(struct mps_command *c, bool is_late)
{
	char text[MPS_ANSWER_MAX];
	mps_command_done done = c->done;
	void *data = c->data;
	int status = reap(c, is_late);
	c->text[c->length] = '\0';
	strcpy(text, c->text);
	free_command(c);
	done(data, is_late ? -ETIMEDOUT : status, text);
}

static void tool_ended(void *data, uint32_t events)
{
	end(data, false);
}

/* The tool has closed its output, but may hang before its end: the timer must still be able to kill it. */
static void wait_for_end(struct mps_command *c)
{
	c->source = loop_remove(c->source);
	close_fd(&c->fd);
	c->fd = (int)syscall(SYS_pidfd_open, c->pid, 0); /* close-on-exec */
	/* Linux before 5.3 has no pidfd. */
	if (c->fd < 0 || loop_add(c->loop, c->fd, EPOLLIN, tool_ended, c, &c->source) < 0)
		end(c, false);
}

static void output_ready(void *data, uint32_t events)
{
	struct mps_command *c = data;
	char rest[256];
	bool is_full = c->length == sizeof(c->text) - 1;
	/* Read and drop output that does not fit, so that the tool is not blocked. */
	ssize_t n = read(c->fd, is_full ? rest : c->text + c->length,
			 is_full ? sizeof(rest) : sizeof(c->text) - 1 - c->length);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n > 0) {
		c->length += is_full ? 0 : (size_t)n;
		return;
	}
	wait_for_end(c);
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

int mps_command_start(struct loop *loop, const struct mps_spawn *spawn, const char *command,
		      uint64_t timeout_ns, mps_command_done done, void *data,
		      struct mps_command **ret, struct error *err)
{
	cleanup_fd int in_fd = -1, out_fd = -1;
	struct mps_spawn s = *spawn;
	int fds[2];
	struct mps_command *c = calloc(1, sizeof(*c));
	if (!c)
		return error_set_errno(err, ENOMEM, MPS_PROGRAM);
	*c = (struct mps_command){ .loop = loop, .fd = -1, .done = done, .data = data };
	int r = make_input(command, &in_fd);
	if (r >= 0 && pipe2(fds, O_CLOEXEC) < 0)
		r = -errno;
	if (r < 0) {
		free(c);
		return error_set_errno(err, -r, MPS_PROGRAM ": pipe");
	}
	c->fd = fds[0];
	fcntl(c->fd, F_SETFL, O_NONBLOCK);
	out_fd = fds[1];
	s.argument = NULL;
	s.is_detached = false;
	s.in_fd = in_fd;
	s.out_fd = out_fd;
	r = loop_add(loop, c->fd, EPOLLIN, output_ready, c, &c->source);
	if (r >= 0)
		r = loop_add_timer(loop, late, c, &c->timer);
	if (r < 0)
		error_set_errno(err, -r, MPS_PROGRAM);
	else
		r = c->pid = mps_spawn(&s, err);
	if (r < 0) {
		free_command(c);
		return r;
	}
	loop_arm(c->timer, timeout_ns, 0);
	*ret = c;
	return 0;
}

struct mps_command *mps_command_free(struct mps_command *c)
{
	if (!c)
		return NULL;
	reap(c, true);
	free_command(c);
	return NULL;
}
