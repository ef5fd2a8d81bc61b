#include "cli/run/command_child.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"

/* Signals that are passed on to the command. Job control signals (SIGTSTP, SIGCONT) go to the process group anyway. */
static const int forwarded[] = { SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2 };

static int check_executable(const char *path)
{
	struct stat st;

	if (stat(path, &st) < 0)
		return -errno;
	if (S_ISDIR(st.st_mode))
		return -EISDIR;
	return access(path, X_OK) < 0 ? -errno : 0;
}

static int exec_error(const char *name, int result, struct error *err)
{
	if (result == -ENOENT || result == -ENOTDIR)
		return error_set(err, ENOENT, "'%s': command not found", name);
	return error_set_errno(err, -result, "'%s': cannot be executed", name);
}

int child_find(const char *name, char ret_path[PATHS_MAX], struct error *err)
{
	const char *search = getenv("PATH");
	int result = -ENOENT;

	if (strchr(name, '/')) {
		result = check_executable(name);
		if (result < 0)
			return exec_error(name, result, err);
		if (strlen(name) >= PATHS_MAX)
			return error_set(
				err, ENAMETOOLONG,
				"'%.60s...': the path of a command must have at most %d bytes",
				name, PATHS_MAX - 1);
		strcpy(ret_path, name);
		return 0;
	}
	if (!search)
		search = "/usr/local/bin:/usr/bin:/bin";
	for (const char *c = *name ? search : NULL; c;) {
		size_t length = strcspn(c, ":");
		int r;

		/* In PATH, an empty element is the working directory. */
		if (length + strlen(name) + 3 <= PATHS_MAX) {
			memcpy(ret_path, length ? c : ".", length ? length : 1);
			ret_path[length ? length : 1] = '/';
			strcpy(ret_path + (length ? length : 1) + 1, name);
			r = check_executable(ret_path);
			if (r == 0)
				return 0;
			if (r == -EACCES)
				result = r;
		}
		c = c[length] ? c + length + 1 : NULL;
	}
	return exec_error(name, result, err);
}

int child_exit_status(int result)
{
	return result == -ENOENT ? EXIT_NOT_FOUND : EXIT_CANNOT_RUN;
}

/* Runs in the new process. Does not return. */
static void exec_command(const char *path, char **argv, char **environment, const sigset_t *mask,
			 bool ignore_children, int failure_fd)
{
	int error;

	if (ignore_children)
		signal(SIGCHLD, SIG_IGN);
	sigprocmask(SIG_SETMASK, mask, NULL);
	/* Unlike execve(), execvpe() also runs a script without #!. It searches no PATH, because `path` has a '/'. */
	execvpe(path, argv, environment);
	error = errno;
	if (write(failure_fd, &error, sizeof(error)) < 0)
		_exit(EXIT_CANNOT_RUN);
	_exit(EXIT_CANNOT_RUN);
}

int child_start(const char *path, char **argv, char **environment, struct child *ret_child,
		struct error *err)
{
	cleanup_fd int signal_fd = -1, failure_read = -1, failure_write = -1;
	sigset_t ours, theirs;
	int pipe_fds[2], error;
	bool ignored;
	ssize_t n;
	pid_t pid;

	/* This program may have inherited an ignored SIGCHLD. Then the kernel would reap the command before waitpid(). */
	ignored = signal(SIGCHLD, SIG_DFL) == SIG_IGN;
	sigemptyset(&ours);
	sigaddset(&ours, SIGCHLD);
	for (size_t i = 0; i < sizeof(forwarded) / sizeof(forwarded[0]); i++)
		sigaddset(&ours, forwarded[i]);
	signal_fd = signalfd(-1, &ours, SFD_CLOEXEC | SFD_NONBLOCK);
	if (signal_fd < 0)
		return error_set_errno(err, errno, "signalfd");
	if (pipe2(pipe_fds, O_CLOEXEC) < 0)
		return error_set_errno(err, errno, "pipe");
	failure_read = pipe_fds[0];
	failure_write = pipe_fds[1];

	sigprocmask(SIG_BLOCK, &ours, &theirs);
	pid = fork();
	if (pid == 0)
		exec_command(path, argv, environment, &theirs, ignored, failure_write);
	if (pid < 0) {
		error = errno;
		sigprocmask(SIG_SETMASK, &theirs, NULL);
		return error_set_errno(err, error, "fork");
	}
	close_fd(&failure_write);
	do
		n = read(failure_read, &error, sizeof(error));
	while (n < 0 && errno == EINTR);
	if (n == (ssize_t)sizeof(error)) {
		waitpid(pid, NULL, 0);
		return error_set_errno(err, error, "'%s': cannot be executed", path);
	}
	ret_child->is_asked_to_end = false;
	ret_child->pid = pid;
	ret_child->signal_fd = steal_fd(&signal_fd);
	return 0;
}

bool child_handle(struct child *child, int *ret_status)
{
	struct signalfd_siginfo info;
	int status;

	while (read(child->signal_fd, &info, sizeof(info)) == (ssize_t)sizeof(info)) {
		/* Do not pass on a signal of the terminal (SI_KERNEL): the whole process group has got it, the command too. */
		if (info.ssi_signo != SIGCHLD && info.ssi_code != SI_KERNEL)
			kill(child->pid, (int)info.ssi_signo);
		child->is_asked_to_end |= info.ssi_signo == SIGHUP || info.ssi_signo == SIGINT ||
					  info.ssi_signo == SIGTERM;
	}
	if (waitpid(child->pid, &status, WNOHANG) != child->pid)
		return false;
	*ret_status = WIFSIGNALED(status) ? EXIT_SIGNAL_OFFSET + WTERMSIG(status)
					  : WEXITSTATUS(status);
	return true;
}
