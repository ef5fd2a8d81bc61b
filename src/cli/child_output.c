#include "cli/child_output.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"

static void read_output(int fd, int limit_ms, char *text, size_t size)
{
	struct pollfd one = { .fd = fd, .events = POLLIN };
	uint64_t end_ns = clock_now_ns() + (uint64_t)limit_ms * NSEC_PER_MSEC;
	size_t have = 0;

	while (have < size - 1) {
		uint64_t now_ns = clock_now_ns(), left_ns = end_ns > now_ns ? end_ns - now_ns : 0;
		ssize_t n = poll(&one, 1, limit_ms < 0 ? -1 : (int)(left_ns / NSEC_PER_MSEC));

		if (n > 0)
			n = read(fd, text + have, size - 1 - have);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			break;
		have += (size_t)n;
	}
	text[have] = '\0';
}

static void exec_child(char *const argv[], bool with_errors, int out)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	dup2(null, STDIN_FILENO);
	dup2(out, STDOUT_FILENO);
	dup2(with_errors ? out : null, STDERR_FILENO);
	/* execvp() would let /bin/sh run a file of an unknown format. */
	if (strchr(argv[0], '/'))
		execv(argv[0], argv);
	else
		execvp(argv[0], argv);
	dprintf(STDERR_FILENO, "%s: %s", argv[0], strerror(errno));
	_exit(127);
}

int child_output(char *const argv[], bool with_errors, int limit_ms, char *text, size_t size,
		 int *ret_status, struct error *err)
{
	cleanup_fd int read_fd = -1, write_fd = -1;
	int fds[2];

	if (pipe2(fds, O_CLOEXEC) < 0)
		return error_set_errno(err, errno, "pipe");
	read_fd = fds[0];
	write_fd = fds[1];
	pid_t pid = fork();
	if (pid < 0)
		return error_set_errno(err, errno, "fork");
	if (pid == 0)
		exec_child(argv, with_errors, write_fd);
	close_fd(&write_fd);
	read_output(read_fd, limit_ms, text, size);
	/* A program that writes more must not wait for a reader. */
	close_fd(&read_fd);
	if (limit_ms >= 0)
		kill(pid, SIGKILL);
	while (waitpid(pid, ret_status, 0) < 0 && errno == EINTR)
		;
	return 0;
}
