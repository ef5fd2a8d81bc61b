#include "interpose/registration.h"

#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "interpose/sys.h"
#include "region/registration.h"

enum { FD_CONTROL, FD_REPORT, FD_ARENA, FD_COUNT };

static int connect_to(const char *path, uint64_t patience_ns)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	struct timeval patience = {
		.tv_sec = (time_t)(patience_ns / NS_PER_S),
		.tv_usec = (suseconds_t)(patience_ns % NS_PER_S / NS_PER_US),
	};
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return -errno;
	strncpy(address.sun_path, path, sizeof(address.sun_path) - 1);
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
	if (connect(fd, (struct sockaddr *)&address, sizeof(address)) < 0) {
		int error = -errno;
		close(fd);
		return error;
	}
	return fd;
}

/* One request, with our credentials for a daemon whose kernel lacks SO_PEERPIDFD. */
static int send_request(int fd, uint64_t previous_epoch)
{
	struct registration_request request = {
		.magic = REGISTRATION_MAGIC,
		.version = REGISTRATION_VERSION,
		.pid = (int32_t)syscall(SYS_getpid),
		.previous_epoch = previous_epoch,
	};
	struct ucred who = {
		.pid = (pid_t)request.pid,
		.uid = (uid_t)syscall(SYS_getuid),
		.gid = (gid_t)syscall(SYS_getgid),
	};
	union {
		struct cmsghdr header;
		char space[CMSG_SPACE(sizeof(who))];
	} control = { 0 };
	struct iovec part = { &request, sizeof(request) };
	struct msghdr message = {
		.msg_iov = &part,
		.msg_iovlen = 1,
		.msg_control = control.space,
		.msg_controllen = sizeof(control.space),
	};

	control.header.cmsg_len = CMSG_LEN(sizeof(who));
	control.header.cmsg_level = SOL_SOCKET;
	control.header.cmsg_type = SCM_CREDENTIALS;
	memcpy(CMSG_DATA(&control.header), &who, sizeof(who));
	return sendmsg(fd, &message, MSG_NOSIGNAL) == (ssize_t)sizeof(request) ? 0 : -errno;
}

/* Those that were agreed on into `fds`; any others are closed: nothing is left in the program. */
static void take_descriptors(struct msghdr *message, int fds[FD_COUNT])
{
	for (struct cmsghdr *c = CMSG_FIRSTHDR(message); c; c = CMSG_NXTHDR(message, c)) {
		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
			continue;
		size_t count = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
		for (size_t i = 0; i < count; i++) {
			int fd;
			memcpy(&fd, CMSG_DATA(c) + i * sizeof(int), sizeof(fd));
			if (count <= FD_COUNT && fds[i] < 0)
				fds[i] = fd;
			else
				close(fd);
		}
	}
}

static int receive_reply(int fd, struct registration_reply *ret, int fds[FD_COUNT])
{
	union {
		struct cmsghdr header;
		char space[CMSG_SPACE(sizeof(int) * (FD_COUNT + 2))];
	} control;
	struct iovec part = { ret, sizeof(*ret) };
	struct msghdr message = {
		.msg_iov = &part,
		.msg_iovlen = 1,
		.msg_control = control.space,
		.msg_controllen = sizeof(control.space),
	};
	ssize_t n = recvmsg(fd, &message, MSG_CMSG_CLOEXEC);

	if (n < 0)
		return -errno;
	take_descriptors(&message, fds);
	if (n == 0)
		return -ECONNRESET;
	if (n != (ssize_t)sizeof(*ret) || ret->magic != REGISTRATION_MAGIC ||
	    ret->version != REGISTRATION_VERSION)
		return -EPROTO;
	ret->message[sizeof(ret->message) - 1] = '\0';
	return 0;
}

void registration_unmap(const struct region_control *control, struct region_report *report)
{
	if (control)
		munmap((void *)(uintptr_t)control, sizeof(*control));
	if (report)
		munmap(report, sizeof(*report));
}

/* Where it can't be had, memory stays on the card. Not in a core file: it is the card's, and large. */
static void *map_arena(int fd, uint64_t bytes)
{
	void *arena = fd < 0 || !bytes
			      ? MAP_FAILED
			      : mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	if (arena == MAP_FAILED)
		return NULL;
	madvise(arena, bytes, MADV_DONTDUMP);
	madvise(arena, bytes, MADV_DONTFORK);
	return arena;
}

static int map_files(const int fds[FD_COUNT], bool is_again, struct registration *r)
{
	void *control = mmap(NULL, sizeof(*r->control), PROT_READ, MAP_SHARED, fds[FD_CONTROL], 0);
	void *report = mmap(NULL, sizeof(*r->report), PROT_READ | PROT_WRITE, MAP_SHARED,
			    fds[FD_REPORT], 0);

	r->control = control == MAP_FAILED ? NULL : control;
	r->report = report == MAP_FAILED ? NULL : report;
	if (r->control && r->report && region_control_is_valid(r->control) &&
	    region_report_is_valid(r->report) && r->slot < REGION_MAX_SLOTS &&
	    (fds[FD_ARENA] >= 0) == (r->control->arena_bytes > 0)) {
		/* A process that joins again has its arena already, and maybe memory in there. */
		if (!is_again)
			r->arena = map_arena(fds[FD_ARENA], r->control->arena_bytes);
		return 0;
	}
	int error = r->control && r->report ? -EPROTO : -ENOMEM;
	registration_unmap(r->control, r->report);
	r->control = NULL;
	r->report = NULL;
	return error;
}

static int ask(const char *path, uint64_t previous_epoch, uint64_t patience_ns,
	       struct registration *ret)
{
	struct registration_reply reply;
	int fds[FD_COUNT] = { -1, -1, -1 };
	int fd = connect_to(path, patience_ns);

	if (fd < 0)
		return fd;
	int error = send_request(fd, previous_epoch);
	if (!error)
		error = receive_reply(fd, &reply, fds);
	close(fd);
	if (!error && reply.status) {
		memcpy(ret->message, reply.message, sizeof(ret->message));
		error = -reply.status;
	}
	if (!error && (fds[FD_CONTROL] < 0 || fds[FD_REPORT] < 0))
		error = -EPROTO;
	if (!error) {
		ret->slot = reply.slot;
		error = map_files(fds, previous_epoch != 0, ret);
	}
	for (int i = 0; i < FD_COUNT; i++)
		if (fds[i] >= 0)
			close(fds[i]);
	return error;
}

/* A socket with a time limit is never restarted: a profiler's timer would end every exchange. */
int registration_ask(const char *path, uint64_t previous_epoch, uint64_t patience_ns,
		     struct registration *ret)
{
	uint64_t all = ~0ULL, old = 0;

	memset(ret, 0, sizeof(*ret));
	syscall(SYS_rt_sigprocmask, SIG_SETMASK, &all, &old, sizeof(all));
	int error = ask(path, previous_epoch, patience_ns, ret);
	syscall(SYS_rt_sigprocmask, SIG_SETMASK, &old, NULL, sizeof(old));
	return error;
}
