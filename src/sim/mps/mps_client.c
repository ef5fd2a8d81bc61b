#include "sim/mps/mps_client.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "sim/mps/mps_wire.h"

static struct {
	int fd;
	void (*gone)(void *data);
	void *data;
} attached = { .fd = -1 };

/* The server sends no more bytes, so recv() returns only when the server ends or drops this process. */
static void *watch(void *unused)
{
	char byte;

	while (recv(attached.fd, &byte, 1, 0) < 0 && errno == EINTR)
		;
	attached.gone(attached.data);
	return NULL;
}

/* Returns as mps_attach(). After 1, *ret_fd is the connection. */
static int connect_to(const char *dir, int *ret_fd)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	char answer = 0;

	if (snprintf(address.sun_path, sizeof(address.sun_path), "%s/" MPS_SOCKET, dir) >=
	    (int)sizeof(address.sun_path))
		return 0;
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return 0;
	if (connect(fd, (struct sockaddr *)&address, sizeof(address)) < 0 ||
	    send(fd, MPS_CLIENT_HELLO, strlen(MPS_CLIENT_HELLO), MSG_NOSIGNAL) < 0 ||
	    recv(fd, &answer, 1, 0) != 1 || answer != MPS_TAKEN) {
		close(fd);
		return answer == MPS_FULL ? -EUSERS : answer == MPS_AWAY ? -ECONNREFUSED : 0;
	}
	*ret_fd = fd;
	return 1;
}

int mps_attach(void (*gone)(void *data), void *data)
{
	const char *dir = getenv("CUDA_MPS_PIPE_DIRECTORY");
	sigset_t all, before;
	pthread_attr_t attr;
	pthread_t thread;
	int r = dir && *dir ? connect_to(dir, &attached.fd) : 0;

	if (r <= 0)
		return r;
	attached.gone = gone;
	attached.data = data;
	/* The new thread inherits this signal mask, so that only the program's own threads get its signals. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	pthread_attr_init(&attr);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	if (pthread_create(&thread, &attr, watch, NULL) != 0) {
		mps_forget();
		r = 0;
	}
	pthread_attr_destroy(&attr);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return r;
}

void mps_forget(void)
{
	if (attached.fd >= 0)
		close(attached.fd);
	attached.fd = -1;
}
