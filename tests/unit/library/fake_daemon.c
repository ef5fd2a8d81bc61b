#include "fake_daemon.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "fake_libcuda.h"

static void *make_file(size_t size, int *ret_fd)
{
	*ret_fd = memfd_create("fake", MFD_CLOEXEC);
	if (*ret_fd < 0 || ftruncate(*ret_fd, (off_t)size))
		abort();
	void *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, *ret_fd, 0);
	if (p == MAP_FAILED)
		abort();
	return p;
}

static void make_region(struct fake_daemon *d, uint64_t epoch)
{
	d->control = make_file(sizeof(*d->control), &d->control_fd);
	/* As an older daemon makes it: behind REGION_REPORT_BYTES there is nothing. */
	d->report = make_file(REGION_REPORT_BYTES, &d->report_fd);
	d->control->magic = d->report->magic = REGION_MAGIC;
	d->control->version = d->report->version = REGION_VERSION;
	d->control->size_bytes = sizeof(*d->control);
	d->report->size_bytes = REGION_REPORT_BYTES;
	d->control->device_count = 1;
	d->control->epoch = epoch;
	strcpy(d->control->tenant_name, "fake");
	struct region_control_device *c = &d->control->device[0];
	memcpy(c->uuid, FAKE_UUID, sizeof(c->uuid));
	c->lease = LEASE_FREE;
	c->limit_pct_x100 = 10000;
	c->quota_bytes = 1ULL << 30;
	c->context_bytes = 8ULL << 20;
	c->depth_ns = 4000000;
	c->free_depth_ns = 50000000;
	c->long_work_ns = 20000000;
	c->idle_ns = 1000000;
}

static void reply_to(struct fake_daemon *d, int fd, enum fake_answer answer)
{
	struct registration_reply reply = {
		.magic = REGISTRATION_MAGIC,
		.version = answer == ANSWER_OLD_VERSION ? 77 : REGISTRATION_VERSION,
		.epoch = d->control->epoch,
		.slot = answer == ANSWER_BAD_SLOT ? REGION_MAX_SLOTS : d->next_slot,
	};
	int fds[3] = { d->control_fd, d->report_fd, d->report_fd };
	unsigned count = answer == ANSWER_NO_FDS      ? 0
			 : answer == ANSWER_ONE_FD    ? 1
			 : answer == ANSWER_THREE_FDS ? 3
						      : 2;
	char garbage[1000];
	union {
		struct cmsghdr header;
		char space[CMSG_SPACE(sizeof(fds))];
	} control = { 0 };
	struct iovec part = { &reply, sizeof(reply) };
	struct msghdr message = { .msg_iov = &part, .msg_iovlen = 1 };

	memset(garbage, 'x', sizeof(garbage));
	if (answer == ANSWER_REFUSAL) {
		reply.status = EDQUOT;
		strcpy(reply.message, "the tenant is full");
		count = 0;
	}
	if (answer == ANSWER_GARBAGE)
		part = (struct iovec){ garbage, 20 };
	if (answer == ANSWER_LONG_GARBAGE)
		part = (struct iovec){ garbage, sizeof(garbage) };
	if (count) {
		message.msg_control = control.space;
		message.msg_controllen = CMSG_SPACE(count * sizeof(int));
		control.header.cmsg_level = SOL_SOCKET;
		control.header.cmsg_type = SCM_RIGHTS;
		control.header.cmsg_len = CMSG_LEN(count * sizeof(int));
		memcpy(CMSG_DATA(&control.header), fds, count * sizeof(int));
	}
	sendmsg(fd, &message, MSG_NOSIGNAL);
	if (answer == ANSWER_WELL || answer == ANSWER_SLOWLY)
		d->next_slot++;
}

/* As the daemon does: the old image of a process that registers for the first time is gone. */
static void assign_slot(struct fake_daemon *d)
{
	struct region_slot *s = &d->report->slot[d->next_slot];

	if (d->next_slot >= REGION_MAX_SLOTS)
		abort();
	if (d->control->slot_limit <= d->next_slot)
		atomic_store(&d->control->slot_limit, d->next_slot + 1);
	memset(s, 0, sizeof(*s));
	s->state = SLOT_LIVE;
	s->generation = 1;
}

static void serve(struct fake_daemon *d, int fd)
{
	struct registration_request request;
	struct ucred peer = { 0 };
	socklen_t size = sizeof(peer);
	enum fake_answer answer = (enum fake_answer)d->answer;

	getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size);
	ssize_t n = recv(fd, &request, sizeof(request), 0);
	if (n == (ssize_t)sizeof(request)) {
		unsigned i = d->requests % FAKE_DAEMON_REQUESTS;
		d->request[i] = request;
		d->peer[i] = peer.pid;
		d->requests++;
	}
	if (answer == ANSWER_SLOWLY)
		usleep(300000);
	if (answer == ANSWER_SILENCE) {
		struct pollfd p = { .fd = fd, .events = POLLIN };
		while (!d->stop && d->answer == ANSWER_SILENCE && poll(&p, 1, 50) == 0)
			;
	} else if (answer != ANSWER_HANG_UP) {
		d->control->version = answer == ANSWER_BAD_REGION ? 99 : REGION_VERSION;
		assign_slot(d);
		reply_to(d, fd, answer);
	}
	close(fd);
}

static void *run(void *context)
{
	struct fake_daemon *d = context;
	struct pollfd p = { .fd = d->listener, .events = POLLIN };

	while (!d->stop) {
		if (d->beats)
			atomic_fetch_add(&d->control->heartbeat, 1);
		if (poll(&p, 1, 20) > 0) {
			int fd = accept4(d->listener, NULL, NULL, SOCK_CLOEXEC);
			if (fd >= 0)
				serve(d, fd);
		}
	}
	return NULL;
}

void fake_daemon_start(struct fake_daemon *d, const char *path, uint64_t epoch)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };

	memset(d, 0, sizeof(*d));
	strcpy(d->path, path);
	strcpy(address.sun_path, path);
	d->beats = true;
	make_region(d, epoch);
	unlink(path);
	d->listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (bind(d->listener, (struct sockaddr *)&address, sizeof(address)) ||
	    listen(d->listener, 16) || pthread_create(&d->thread, NULL, run, d))
		abort();
}

void fake_daemon_stop(struct fake_daemon *d)
{
	d->stop = true;
	pthread_join(d->thread, NULL);
	close(d->listener);
	close(d->control_fd);
	close(d->report_fd);
	munmap(d->control, sizeof(*d->control));
	munmap(d->report, REGION_REPORT_BYTES);
}
