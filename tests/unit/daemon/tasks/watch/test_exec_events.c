/* Messages from another process than the kernel count for nothing. The test plays the socket. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include <linux/cn_proc.h>
#include <linux/connector.h>
#include <linux/netlink.h>

#include "daemon/tasks/watch/exec_events.h"

static struct message {
	uint32_t port; /* of the sender; 0: the kernel */
	struct proc_event event;
} messages[4];
static unsigned message_count, messages_read;

static struct proc_event answer(unsigned error)
{
	struct proc_event e = { .what = PROC_EVENT_NONE };
	e.event_data.ack.err = error;
	return e;
}

static struct proc_event exec_of(int pid)
{
	struct proc_event e = { .what = PROC_EVENT_EXEC };
	e.event_data.exec.process_pid = e.event_data.exec.process_tgid = pid;
	return e;
}

static void comes(uint32_t port, struct proc_event event)
{
	messages[message_count++] = (struct message){ port, event };
}

/* ---- in place of the C library's ---- */

int socket(int domain, int type, int protocol)
{
	return open("/dev/null", O_RDWR | O_CLOEXEC);
}

int bind(int fd, const struct sockaddr *address, socklen_t size)
{
	return 0;
}

int setsockopt(int fd, int level, int name, const void *value, socklen_t size)
{
	return 0;
}

ssize_t send(int fd, const void *data, size_t size, int flags)
{
	return (ssize_t)size;
}

ssize_t recvfrom(int fd, void *data, size_t size, int flags, struct sockaddr *from,
		 socklen_t *from_size)
{
	const size_t at = NLMSG_HDRLEN + sizeof(struct cn_msg);
	if (messages_read == message_count) {
		errno = EAGAIN;
		return -1;
	}
	const struct message *m = &messages[messages_read++];
	const struct sockaddr_nl sender = { .nl_family = AF_NETLINK, .nl_pid = m->port };
	assert_true(size >= at + sizeof(m->event));
	if (from)
		memcpy(from, &sender, sizeof(sender));
	memcpy((char *)data + at, &m->event, sizeof(m->event));
	return (ssize_t)(at + sizeof(m->event));
}

ssize_t recv(int fd, void *data, size_t size, int flags)
{
	return recvfrom(fd, data, size, flags, NULL, NULL);
}

/* ---- tests ---- */

static int set_up(void **state)
{
	message_count = messages_read = 0;
	return 0;
}

static void test_the_kernel_answers(void **state)
{
	comes(0, answer(0));
	int fd = exec_events_open();
	assert_true(fd >= 0);
	close(fd);
	comes(0, answer(EPERM));
	assert_int_equal(exec_events_open(), -EPERM);
}

static void test_a_forged_answer(void **state)
{
	/* This kernel does not answer. */
	comes(7, answer(0));
	assert_int_equal(exec_events_open(), -EPERM);
	comes(7, answer(EINVAL));
	comes(0, answer(0));
	int fd = exec_events_open();
	assert_true(fd >= 0);
	close(fd);
}

static void test_a_forged_event(void **state)
{
	comes(7, exec_of(12));
	comes(0, exec_of(34));
	comes(7, exec_of(56));
	assert_int_equal(exec_events_read(-1), 34);
	assert_int_equal(exec_events_read(-1), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_the_kernel_answers, set_up),
		cmocka_unit_test_setup(test_a_forged_answer, set_up),
		cmocka_unit_test_setup(test_a_forged_event, set_up),
	};
	return cmocka_run_group_tests_name("exec_events", tests, NULL, NULL);
}
