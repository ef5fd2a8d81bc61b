#include "sim/mps/mps_server.h"

#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/fd/send_fds.h"
#include "sim/mps/mps_wire.h"

struct client {
	int fd, pid;
};

static struct client clients[MPS_CLIENTS_MAX];
static unsigned client_count;
static bool is_server; /* false: this is the control daemon */

void mps_log(const char *format, ...)
{
	char stamp[32], text[512];
	struct timespec now;
	struct tm tm;
	va_list arguments;

	clock_gettime(CLOCK_REALTIME, &now);
	localtime_r(&now.tv_sec, &tm);
	strftime(stamp, sizeof(stamp), "%F %T", &tm);
	va_start(arguments, format);
	vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	printf("[%s.%03ld %s %5d] %s\n", stamp, now.tv_nsec / 1000000,
	       is_server ? "Server" : "Control", getpid(), text);
	fflush(stdout);
}

int mps_pass_client(int server_fd, int client_fd, int client_pid)
{
	return send_fds(server_fd, &client_pid, sizeof(client_pid), &client_fd, 1, MSG_NOSIGNAL) < 0
		       ? -errno
		       : 0;
}

static void take(int fd, int pid)
{
	char answer = client_count < MPS_CLIENTS_MAX ? MPS_TAKEN : MPS_FULL;

	if (send(fd, &answer, 1, MSG_NOSIGNAL) != 1 || answer == MPS_FULL) {
		mps_log("Client {PID: %d} is refused: %u of at most %d clients are connected", pid,
			client_count, MPS_CLIENTS_MAX);
		close(fd);
		return;
	}
	mps_log("Client {PID: %d, Context ID: 0} connected", pid);
	clients[client_count++] = (struct client){ fd, pid };
}

static void send_client_list(int control_fd)
{
	char text[MPS_CLIENTS_MAX * 12] = "";

	for (unsigned i = 0; i < client_count; i++)
		snprintf(text + strlen(text), sizeof(text) - strlen(text), "%d\n", clients[i].pid);
	send(control_fd, text, strlen(text) + 1, MSG_NOSIGNAL);
}

/* Drops the client `pid`, or all clients for MPS_FAULT_OF_ALL. False if pid is negative: the server must end. */
static bool fault(int pid)
{
	if (pid <= 0)
		mps_log("Device-level fatal exception encountered");
	if (pid < 0)
		return false;
	if (pid == MPS_FAULT_OF_ALL)
		while (client_count)
			close(clients[--client_count].fd);
	for (unsigned i = 0; i < client_count; i++)
		if (clients[i].pid == pid) {
			close(clients[i].fd);
			clients[i] = clients[--client_count];
			mps_log("Client {PID: %d, Context ID: 0} exiting. Worker is in reset. "
				"Number of "
				"active client contexts is %u.",
				pid, client_count);
			break;
		}
	return true;
}

/* False: this server must end. Sets *ret_again if clients were dropped, so that the last poll()'s result is out of date. */
static bool handle_control(int control_fd, bool *ret_again)
{
	union {
		struct cmsghdr header;
		char space[CMSG_SPACE(sizeof(int))];
	} control;
	int pid = 0, fd;
	struct iovec iov = { .iov_base = &pid, .iov_len = sizeof(pid) };
	struct msghdr message = { .msg_iov = &iov,
				  .msg_iovlen = 1,
				  .msg_control = &control,
				  .msg_controllen = sizeof(control.space) };
	ssize_t n = recvmsg(control_fd, &message, MSG_CMSG_CLOEXEC);

	if (n < 0 && errno == EINTR)
		return true;
	if (n <= 0)
		return false;
	struct cmsghdr *c = CMSG_FIRSTHDR(&message);
	if (!c && n == (ssize_t)sizeof(pid)) {
		if (!fault(pid))
			exit(1);
		*ret_again = true;
		return true;
	}
	if (!c) {
		send_client_list(control_fd);
		return true;
	}
	memcpy(&fd, CMSG_DATA(c), sizeof(fd));
	take(fd, pid);
	return true;
}

static void remove_disconnected(const struct pollfd *polled, unsigned count)
{
	for (unsigned i = count; i-- > 0;)
		if (polled[i].revents) {
			mps_log("Client process %d disconnected", clients[i].pid);
			close(clients[i].fd);
			clients[i] = clients[--client_count];
		}
}

int mps_serve(int control_fd)
{
	bool is_quitting = false;

	is_server = true;
	mps_log("Server has started");
	while (!is_quitting || client_count) {
		struct pollfd polled[MPS_CLIENTS_MAX + 1];
		unsigned count = client_count;
		bool again = false;

		for (unsigned i = 0; i < count; i++)
			polled[i] = (struct pollfd){ .fd = clients[i].fd, .events = POLLIN };
		polled[count] = (struct pollfd){ .fd = is_quitting ? -1 : control_fd,
						 .events = POLLIN };
		if (poll(polled, count + 1, is_quitting ? 1000 : -1) == 0)
			break; /* as with "quit -t 1", the remaining clients end with the server */
		if (polled[count].revents && !handle_control(control_fd, &again)) {
			is_quitting = true;
			if (polled[count].revents & POLLHUP)
				break; /* the control daemon is gone */
		}
		if (!again)
			remove_disconnected(polled, count);
	}
	return 0;
}
