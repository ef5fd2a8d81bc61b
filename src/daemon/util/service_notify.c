#include "daemon/util/service_notify.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "base/parse.h"
#include "net/loop.h"

#define NS_PER_US 1000

struct service {
	int fd; /* connected to the service manager */
	uint64_t watchdog_ns;
	struct loop_source *watchdog;
};

uint64_t service_watchdog_ns(const char *usec, const char *watched_pid, int pid)
{
	struct error err;
	int64_t us, watched;
	if (!usec || parse_int(usec, 1, INT64_MAX / NS_PER_US, &us, &err) < 0)
		return 0;
	if (watched_pid &&
	    (parse_int(watched_pid, 1, INT32_MAX, &watched, &err) < 0 || watched != pid))
		return 0;
	return (uint64_t)us * NS_PER_US;
}

/* `name` is a path, or an abstract name with '@' in place of its first NUL. */
static int connect_to(const char *name)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	size_t length = strlen(name);
	if ((name[0] != '/' && name[0] != '@') || length < 2 || length >= sizeof(address.sun_path))
		return -EINVAL;
	memcpy(address.sun_path, name, length);
	if (name[0] == '@')
		address.sun_path[0] = '\0';
	socklen_t size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + length);
	cleanup_fd int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0 || connect(fd, (struct sockaddr *)&address, size) < 0)
		return -errno;
	return steal_fd(&fd);
}

/* Does not block: if the service manager's queue is full, the message is lost. */
static void notify(const struct service *s, const char *text)
{
	if (send(s->fd, text, strlen(text), MSG_NOSIGNAL) < 0)
		log_debug("service manager: %s", strerror(errno));
}

struct service *service_open(void)
{
	const char *name = getenv("NOTIFY_SOCKET");
	struct service *s = NULL;
	if (!name)
		return NULL;
	int fd = connect_to(name);
	if (fd < 0)
		log_warning("NOTIFY_SOCKET '%.100s': %s; the service manager will not learn when "
			    "allotd is ready",
			    name, strerror(-fd));
	else if (!(s = calloc(1, sizeof(*s))))
		close(fd);
	if (s) {
		s->fd = fd;
		s->watchdog_ns = service_watchdog_ns(getenv("WATCHDOG_USEC"),
						     getenv("WATCHDOG_PID"), getpid());
	}
	unsetenv("NOTIFY_SOCKET");
	unsetenv("WATCHDOG_USEC");
	unsetenv("WATCHDOG_PID");
	return s;
}

static void send_watchdog(void *data, uint32_t events)
{
	notify(data, "WATCHDOG=1");
}

void service_ready(struct service *s, struct loop *loop, const char *status)
{
	char text[256];
	if (!s)
		return;
	snprintf(text, sizeof(text), "READY=1\nMAINPID=%d\nSTATUS=%s", (int)getpid(), status);
	notify(s, text);
	if (!s->watchdog_ns)
		return;
	if (loop_add_timer(loop, send_watchdog, s, &s->watchdog) < 0) {
		log_warning("can't make the timer that answers the service manager's watchdog, so "
			    "the service manager may end allotd: restart allotd");
		return;
	}
	loop_arm(s->watchdog, 0, s->watchdog_ns / 2 ? s->watchdog_ns / 2 : 1);
}

struct service *service_close(struct service *s)
{
	if (!s)
		return NULL;
	notify(s, "STOPPING=1");
	s->watchdog = loop_remove(s->watchdog);
	close(s->fd);
	free(s);
	return NULL;
}
