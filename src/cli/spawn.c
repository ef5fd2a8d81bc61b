#include "cli/spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#include "base/child.h"
#include "base/cleanup.h"

/* The new process sends this once before exec, and again if exec fails. */
struct birth {
	pid_t pid;
	int exec_error; /* 0 before exec */
};

/* Runs in the new process, async-signal-safe. Does not return. */
static void exec_server(char *const argv[], int log_fd, int ready_fd, int birth_fd)
{
	struct birth birth = { .pid = getpid() };
	/* Move both descriptors to high numbers: low numbers are assigned below. */
	int ready = fcntl(ready_fd, F_DUPFD, 10);
	int report = fcntl(birth_fd, F_DUPFD_CLOEXEC, 10);
	int null_fd = open("/dev/null", O_RDONLY);
	sigset_t none;

	if (write(birth_fd, &birth, sizeof(birth)) != sizeof(birth))
		_exit(127);
	/* The last two copies may close log_fd and birth_fd, if these have the same numbers. Neither is used after that. */
	if (ready < 0 || report < 0 || dup2(null_fd, 0) < 0 || dup2(log_fd, 1) < 0 ||
	    dup2(log_fd, 2) < 0 || dup2(ready, SPAWN_READY_FD) < 0 ||
	    dup3(report, SPAWN_READY_FD + 1, O_CLOEXEC) < 0)
		_exit(127);
	child_close_from(SPAWN_READY_FD + 2);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	signal(SIGINT, SIG_DFL);
	signal(SIGQUIT, SIG_DFL);
	signal(SIGHUP, SIG_IGN);
	if (chdir("/") < 0)
		_exit(127);
	execv(argv[0], argv);
	birth.exec_error = errno;
	if (write(SPAWN_READY_FD + 1, &birth, sizeof(birth)) < 0)
		_exit(126);
	_exit(127);
}

static bool read_birth(int fd, struct birth *ret)
{
	ssize_t n;

	do
		n = read(fd, ret, sizeof(*ret));
	while (n < 0 && errno == EINTR);
	return n == (ssize_t)sizeof(*ret);
}

/* Skips the prefixes of a log line: "<3>", the program's name ("allotd: ") and "error: ". */
static const char *skip_prefix(const char *line, const char *program)
{
	size_t length = strlen(program);

	if (line[0] == '<' && line[1] && line[2] == '>')
		line += 3;
	if (strncmp(line, program, length) == 0 && line[length] == ':')
		line += length + 1 + strspn(line + length + 1, " ");
	if (strncmp(line, "error: ", 7) == 0)
		line += 7;
	return line;
}

/* Reports why the server ended, by the last line of its log after `offset`. */
static int report_exit(const char *path, const char *log_path, off_t offset, struct error *err)
{
	const char *slash = strrchr(path, '/');
	const char *program = slash ? slash + 1 : path;
	cleanup_file FILE *log = fopen(log_path, "re");
	char line[400], last[400] = "";

	if (log && fseeko(log, offset, SEEK_SET) == 0)
		while (fgets(line, sizeof(line), log)) {
			line[strcspn(line, "\n")] = '\0';
			if (*line)
				strcpy(last, line);
		}
	if (*last)
		return error_set(err, EIO, "%s", skip_prefix(last, program));
	return error_set(err, EIO, "%s ended before it was ready; see %s", program, log_path);
}

static int wait_until_ready(int ready_fd, int timeout_ms, const char *log_path, struct error *err)
{
	struct pollfd p = { .fd = ready_fd, .events = POLLIN };
	char byte;
	int n;

	do
		n = poll(&p, 1, timeout_ms);
	while (n < 0 && errno == EINTR);
	if (n == 0)
		return error_set(
			err, ETIMEDOUT,
			"the new process was not ready within %d s and was ended; see its log, %s",
			timeout_ms / 1000, log_path);
	if (n < 0)
		return error_set_errno(err, errno, "poll");
	return read(ready_fd, &byte, 1) == 1 ? 0 : -EIO;
}

/* Forks twice, so that the server is no child of this program and never becomes its zombie. */
static int fork_server(char *const argv[], int log_fd, int ready_fd, int birth_fd, struct error *err)
{
	pid_t pid = fork();
	int status;

	if (pid < 0)
		return error_set_errno(err, errno, "fork");
	if (pid == 0) {
		pid_t server;

		setsid();
		server = fork();
		if (server == 0)
			exec_server(argv, log_fd, ready_fd, birth_fd);
		_exit(server < 0 ? errno : 0);
	}
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return error_set_errno(err, errno, "waitpid");
	int failed = WIFEXITED(status) ? WEXITSTATUS(status) : ECHILD;
	if (failed == EAGAIN)
		return error_set(
			err, EAGAIN,
			"can't start another process: the limit of processes is reached: check "
			"this user's limit (ulimit -u) and the cgroup's (pids.max)");
	return failed ? error_set_errno(err, failed, "can't start another process") : 0;
}

int spawn_server(char *const argv[], const char *log_path, int timeout_ms, pid_t *ret_pid,
		 struct error *err)
{
	cleanup_fd int log_fd = -1, ready_read = -1, ready_write = -1, birth_read = -1,
		       birth_write = -1;
	struct birth birth, failure;
	off_t log_start;
	int pipe_fds[2];
	int r;

	log_fd = open(log_path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (log_fd < 0)
		return error_set_errno(err, errno, "%s", log_path);
	log_start = lseek(log_fd, 0, SEEK_END);
	if (pipe2(pipe_fds, O_CLOEXEC) < 0)
		return error_set_errno(err, errno, "pipe");
	ready_read = pipe_fds[0];
	ready_write = pipe_fds[1];
	if (pipe2(pipe_fds, O_CLOEXEC) < 0)
		return error_set_errno(err, errno, "pipe");
	birth_read = pipe_fds[0];
	birth_write = pipe_fds[1];

	r = fork_server(argv, log_fd, ready_write, birth_write, err);
	if (r < 0)
		return r;
	close_fd(&ready_write);
	close_fd(&birth_write);
	if (!read_birth(birth_read, &birth))
		return error_set(
			err, EIO,
			"%s: the new process ended before it could run this program: try again",
			argv[0]);
	if (read_birth(birth_read, &failure))
		return error_set_errno(err, failure.exec_error, "%s", argv[0]);
	r = wait_until_ready(ready_read, timeout_ms, log_path, err);
	if (r == -ETIMEDOUT)
		kill(birth.pid, SIGKILL);
	if (r == -EIO)
		return report_exit(argv[0], log_path, log_start < 0 ? 0 : log_start, err);
	if (r == 0 && ret_pid)
		*ret_pid = birth.pid;
	return r;
}
