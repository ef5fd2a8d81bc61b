/*
 * A simulated nvidia-cuda-mps-control: the control daemon (-d, -f), the tool that sends commands to it, and a server process
 * for each user. Command line, files, log lines and ways to end are as in the real program, as far as allot relies on them.
 * docs/guide/time-or-space.md lists what is missing.
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "sim/mps/mps_server.h"
#include "sim/mps/mps_wire.h"

#define TEXT_MAX 1024
#define AWAY_MS 300

struct server {
	pid_t pid;
	uid_t uid;
	/* passes clients to the server; shut down for writing to make the server end */
	int fd;
	bool is_faulty; /* after "sim_fault PID stays": accepts no more clients */
};

static struct server servers[MPS_SERVERS_MAX];
static unsigned server_count;
static bool is_quitting;
static int64_t away_until_ms; /* until then, clients are refused, because a server has ended */
static int connection = -1;   /* served now, or served last; -1 if none yet */
/* clients still to be refused; set by "sim_refuse N" */
static long refusals;

static const char *pipe_dir(void)
{
	const char *dir = getenv("CUDA_MPS_PIPE_DIRECTORY");

	return dir && *dir ? dir : "/tmp/nvidia-mps";
}

static int control_address(struct sockaddr_un *ret)
{
	*ret = (struct sockaddr_un){ .sun_family = AF_UNIX };
	int n = snprintf(ret->sun_path, sizeof(ret->sun_path), "%s/" MPS_SOCKET, pipe_dir());

	return n < (int)sizeof(ret->sun_path) ? 0 : -ENAMETOOLONG;
}

static int run_tool(void)
{
	struct sockaddr_un address;
	char text[TEXT_MAX];
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	ssize_t n;

	if (fd < 0 || control_address(&address) < 0 ||
	    connect(fd, (struct sockaddr *)&address, sizeof(address)) < 0) {
		printf("Cannot find MPS control daemon process\n");
		return 1;
	}
	while ((n = read(STDIN_FILENO, text, sizeof(text))) > 0)
		if (write(fd, text, (size_t)n) != n)
			return 1;
	shutdown(fd, SHUT_WR);
	while ((n = read(fd, text, sizeof(text))) > 0)
		if (write(STDOUT_FILENO, text, (size_t)n) != n)
			return 1;
	return 0;
}

static int64_t now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* True if "sim_refuse" asked for this refusal, or if a server ended less than AWAY_MS ago. */
static bool must_refuse(void)
{
	if (refusals > 0) {
		refusals--;
		return true;
	}
	return now_ms() < away_until_ms;
}

static void forget_server(unsigned i)
{
	if (servers[i].fd >= 0)
		close(servers[i].fd);
	servers[i] = servers[--server_count];
}

static void reap_servers(void)
{
	int status;
	pid_t pid;

	while ((pid = waitpid(-1, &status, WNOHANG)) > 0)
		for (unsigned i = 0; i < server_count; i++)
			if (servers[i].pid == pid) {
				mps_log("Server %d exited with status %d", pid,
					WIFEXITED(status) ? WEXITSTATUS(status) : 0);
				forget_server(i);
				away_until_ms = now_ms() + AWAY_MS;
			}
}

/* Returns the user's server, and starts one if there is none. NULL if that fails. */
static struct server *server_of(uid_t uid, int listen_fd)
{
	int fds[2];

	for (unsigned i = 0; i < server_count; i++)
		if (servers[i].uid == uid)
			return &servers[i];
	if (is_quitting || server_count == MPS_SERVERS_MAX ||
	    socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds) < 0)
		return NULL;
	fflush(stdout);
	pid_t pid = fork();
	if (pid == 0) {
		close(listen_fd);
		close(connection);
		close(fds[0]);
		for (unsigned i = 0; i < server_count; i++)
			close(servers[i].fd);
		prctl(PR_SET_NAME, "nvidia-cuda-mps-server");
		_exit(mps_serve(fds[1]));
	}
	close(fds[1]);
	if (pid < 0) {
		close(fds[0]);
		return NULL;
	}
	mps_log("Starting new server %d for user %u", pid, (unsigned)uid);
	mps_log("NEW SERVER %d: Ready", pid);
	servers[server_count] = (struct server){ .pid = pid, .uid = uid, .fd = fds[0] };
	return &servers[server_count++];
}

static struct server *server_of_pid(int pid)
{
	for (unsigned i = 0; i < server_count; i++)
		if (servers[i].pid == pid)
			return &servers[i];
	return NULL;
}

static void list_clients(const struct server *s, char *text, size_t size)
{
	char question = 'l';
	ssize_t n = s && send(s->fd, &question, 1, MSG_NOSIGNAL) == 1
			    ? recv(s->fd, text, size - 1, 0)
			    : 0;

	text[n > 0 ? n : 0] = '\0';
}

static bool has_client(const struct server *s, int pid)
{
	char text[TEXT_MAX], *save = NULL;

	list_clients(s, text, sizeof(text));
	for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save))
		if (atoi(line) == pid)
			return true;
	return false;
}

/*
 * Causes a fault of an MPS client, because simulated kernels never fault. "sim_fault PID" drops that client. "sim_fault PID
 * all" ends its server. "sim_fault PID stays" drops all clients of the server, which accepts no new ones.
 */
static void cause_fault(const char *line)
{
	char word[8] = "";
	int pid;

	if (sscanf(line, "sim_fault %d %7s", &pid, word) < 1)
		return;
	bool stays = !strcmp(word, "stays");
	int fault = stays ? MPS_FAULT_OF_ALL : !strcmp(word, "all") ? -pid : pid;
	for (unsigned i = 0; i < server_count; i++)
		if (has_client(&servers[i], pid)) {
			servers[i].is_faulty = stays;
			send(servers[i].fd, &fault, sizeof(fault), MSG_NOSIGNAL);
		}
}

static void quit(void)
{
	is_quitting = true;
	for (unsigned i = 0; i < server_count; i++) {
		mps_log("Try shutting down server %d", servers[i].pid);
		shutdown(servers[i].fd, SHUT_WR);
	}
}

/* Runs one command. As in the real program, an unknown command only gives a message in `text`. */
static void run_command(char *line, uid_t uid, int listen_fd, char *text, size_t size)
{
	unsigned long number;

	mps_log("Cmd:%s", line);
	if (!strcmp(line, "get_server_list")) {
		for (unsigned i = 0; i < server_count; i++)
			snprintf(text + strlen(text), size - strlen(text), "%d\n", servers[i].pid);
	} else if (sscanf(line, "start_server -uid %lu", &number) == 1) {
		if (uid != 0 && number != uid)
			snprintf(text, size, "Permission denied\n");
		else
			server_of((uid_t)number, listen_fd);
	} else if (sscanf(line, "get_server_status %lu", &number) == 1) {
		const struct server *s = server_of_pid((int)number);
		snprintf(text, size, "%s\n",
			 !s             ? "Server not found"
			 : s->is_faulty ? "FAULT"
					: "ACTIVE");
	} else if (sscanf(line, "get_client_list %lu", &number) == 1) {
		list_clients(server_of_pid((int)number), text, size);
	} else if (sscanf(line, "sim_refuse %ld", &refusals) == 1) {
		text[0] = '\0';
	} else if (!strncmp(line, "sim_fault ", 10)) {
		cause_fault(line);
	} else if (!strcmp(line, "quit") || !strncmp(line, "quit ", 5)) {
		quit();
	} else {
		snprintf(text, size, "Unrecognized command %.40s\n", line);
	}
}

static void pass_to_server(int fd, const struct ucred *who, int listen_fd)
{
	static const char away = MPS_AWAY;

	mps_log("NEW CLIENT %d from user %u", who->pid, (unsigned)who->uid);
	struct server *s = must_refuse() ? NULL : server_of(who->uid, listen_fd);
	if (s && !s->is_faulty && mps_pass_client(s->fd, fd, who->pid) >= 0)
		return;
	mps_log("User %u has no server that accepts clients now", (unsigned)who->uid);
	ssize_t n = send(fd, &away, 1, MSG_NOSIGNAL);
	(void)n;
}

/* Connections are served one at a time. If a peer sends nothing for a second, the commands so far are run. */
static void take_connection(int fd, int listen_fd)
{
	struct timeval patience = { .tv_sec = 1 };
	struct ucred who;
	socklen_t length = sizeof(who);
	char text[TEXT_MAX] = "", reply[TEXT_MAX] = "", *save = NULL;
	size_t used = 0;
	ssize_t n;

	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &length) < 0 ||
	    (who.uid != getuid() && getuid() != 0)) {
		mps_log("User did not send valid credentials");
		return;
	}
	while (used < sizeof(text) - 1 &&
	       (n = recv(fd, text + used, sizeof(text) - 1 - used, 0)) > 0) {
		used += (size_t)n;
		text[used] = '\0';
		if (!strcmp(text, MPS_CLIENT_HELLO)) {
			pass_to_server(fd, &who, listen_fd);
			return;
		}
	}
	for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save))
		run_command(line, who.uid, listen_fd, reply, sizeof(reply));
	n = send(fd, reply, strlen(reply), MSG_NOSIGNAL);
	(void)n;
}

static int listen_at(void)
{
	struct sockaddr_un address;
	char path[sizeof(address.sun_path) + 64];
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0 || control_address(&address) < 0)
		return -1;
	if (connect(fd, (struct sockaddr *)&address, sizeof(address)) == 0) {
		printf("An instance of this daemon is already running\n");
		return -1;
	}
	mkdir(pipe_dir(), 0755);
	unlink(address.sun_path);
	if (bind(fd, (struct sockaddr *)&address, sizeof(address)) < 0 ||
	    chmod(address.sun_path, 0666) < 0 || listen(fd, 64) < 0) {
		printf("Cannot use %s: %s\n", address.sun_path, strerror(errno));
		return -1;
	}
	snprintf(path, sizeof(path), "%s/" MPS_PID_FILE, pipe_dir());
	FILE *file = fopen(path, "w");
	if (file) {
		fprintf(file, "%d", getpid());
		fclose(file);
	}
	return fd;
}

static void on_child(int number)
{
	/* The signal only has to interrupt poll(). */
}

static int serve(int fd)
{
	char path[sizeof(((struct sockaddr_un *)0)->sun_path) + 64];

	mps_log("Starting control daemon using socket %s/" MPS_SOCKET, pipe_dir());
	while (!is_quitting || server_count) {
		struct pollfd p = { .fd = fd, .events = POLLIN };

		if (poll(&p, 1, 100) > 0) {
			int client = accept4(fd, NULL, NULL, SOCK_CLOEXEC);

			if (client >= 0) {
				connection = client;
				take_connection(client, fd);
				close(client);
			}
		}
		reap_servers();
	}
	snprintf(path, sizeof(path), "%s/" MPS_PID_FILE, pipe_dir());
	unlink(path);
	mps_log("Exit with status 0");
	return 0;
}

int main(int argc, char **argv)
{
	const char *how = argc > 1 ? argv[1] : "";
	struct sigaction on_end = { .sa_handler = on_child };

	if (!*how)
		return run_tool();
	if (strcmp(how, "-f") != 0 && strcmp(how, "-d") != 0) {
		fprintf(stderr, "usage: nvidia-cuda-mps-control [-d | -f]\n");
		return 1;
	}
	setvbuf(stdout, NULL, _IOLBF, 0);
	signal(SIGPIPE, SIG_IGN);
	sigaction(SIGCHLD, &on_end, NULL);
	int fd = listen_at();
	if (fd < 0)
		return 1;
	if (!strcmp(how, "-d") && daemon(0, 1) < 0)
		return 1;
	return serve(fd);
}
