#include "cli/doctor/gather.h"

#include <errno.h>
#include <poll.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "cli/doctor/version.h"
#include "cli/run/command_child.h"

#define PROGRAM_MOST_NS (5 * NSEC_PER_SEC)
#define PROGRAM_TEXT_MAX 1024

static char *trim(char *text)
{
	text += strspn(text, " \t\r");
	for (size_t n = strlen(text); n > 0 && strchr(" \t\r", text[n - 1]); n--)
		text[n - 1] = '\0';
	return text;
}

bool gather_setting(const struct host *host, const char *file, const char *key,
		    const char *otherwise, char ret[FACT_TEXT_MAX])
{
	size_t size;
	bool is_there = false;
	cleanup_free char *text = host_read_all(host, file, &size);

	snprintf(ret, FACT_TEXT_MAX, "%s", otherwise);
	for (char *rest = text, *line; rest && (line = strsep(&rest, "\n"));) {
		line[strcspn(line, "#")] = '\0';
		char *equals = strchr(line, '=');
		if (!equals)
			continue;
		*equals = '\0';
		if (strcmp(trim(line), key) != 0)
			continue;
		snprintf(ret, FACT_TEXT_MAX, "%s", trim(equals + 1));
		is_there = true;
	}
	return is_there;
}

/* Reads the program's output until its end, for PROGRAM_MOST_NS at most. Then kills the program, if it still runs. */
static void read_output(int fd, pid_t pid, char text[PROGRAM_TEXT_MAX])
{
	struct pollfd one = { .fd = fd, .events = POLLIN };
	uint64_t end_ns = clock_now_ns() + PROGRAM_MOST_NS;
	size_t have = 0;

	while (have < PROGRAM_TEXT_MAX - 1) {
		uint64_t now_ns = clock_now_ns(), left_ns = end_ns > now_ns ? end_ns - now_ns : 0;
		ssize_t n = poll(&one, 1, (int)(left_ns / NSEC_PER_MSEC)) > 0
				    ? read(fd, text + have, PROGRAM_TEXT_MAX - 1 - have)
				    : 0;
		if (n <= 0)
			break;
		have += (size_t)n;
	}
	text[have] = '\0';
	kill(pid, SIGKILL);
	while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		;
}

static void exec_version(const char *path, int out)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	if (null >= 0)
		dup2(null, STDIN_FILENO);
	dup2(out, STDOUT_FILENO);
	dup2(out, STDERR_FILENO);
	execl(path, path, "--version", (char *)NULL);
	_exit(127);
}

void gather_program_version(const char *program, char ret[FACT_NAME_MAX])
{
	char path[PATHS_MAX], text[PROGRAM_TEXT_MAX] = "";
	int fds[2];

	ret[0] = '\0';
	if (child_find(program, path, NULL) < 0 || pipe2(fds, O_CLOEXEC) < 0)
		return;
	pid_t pid = fork();
	if (pid == 0)
		exec_version(path, fds[1]);
	close(fds[1]);
	if (pid > 0)
		read_output(fds[0], pid, text);
	close(fds[0]);
	version_find(text, ret);
}

enum fact gather_listens(const struct host *host, const char *path, int type)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };

	if (!host_is_local(host) || strlen(path) >= sizeof(address.sun_path))
		return FACT_UNKNOWN;
	strcpy(address.sun_path, path);
	cleanup_fd int fd = socket(AF_UNIX, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0 || connect(fd, (struct sockaddr *)&address, sizeof(address)) == 0)
		return fd < 0 ? FACT_UNKNOWN : FACT_YES;
	return errno == ECONNREFUSED || errno == ENOENT ? FACT_NO
	       : errno == EAGAIN                        ? FACT_YES
							: FACT_UNKNOWN;
}

void gather_module_version(const struct host *host, char ret[FACT_NAME_MAX])
{
	char text[512];

	ret[0] = '\0';
	if (host_read(host, "/proc/driver/nvidia/version", text, sizeof(text)) > 0)
		version_find_word(text, ret);
}
