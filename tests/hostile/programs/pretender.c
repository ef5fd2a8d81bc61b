/*
 * Joins the tenant of ALLOT_SOCKET by itself, without the library and without the driver, and writes into its slot what it likes.
 * Prints "begun" once it has joined.
 *
 *     pretender busy SECONDS    claims to work
 *     pretender low MIB         holds MIB of the simulated GPU without a context, and claims to have launched
 *     pretender ring SECONDS    rings the doorbell without a pause, and asks for memory each time
 *     pretender rejoin SECONDS  joins again and again, as if the daemon had restarted
 *     pretender fuzz SECONDS    sends pieces of requests to the tenant's socket
 */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "abi/shm/region.h"
#include "abi/shm/registration.h"
#include "sim/wire.h"

static int connect_to(const char *variable, int type)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	const char *path = getenv(variable);
	int fd = socket(AF_UNIX, type | SOCK_CLOEXEC, 0);
	if (!path || strlen(path) >= sizeof(address.sun_path))
		exit(2);
	strcpy(address.sun_path, path);
	if (connect(fd, (struct sockaddr *)&address, sizeof(address)) < 0) {
		close(fd);
		return -1;
	}
	return fd;
}

static struct registration_request request_of(uint64_t epoch)
{
	return (struct registration_request){ .magic = REGISTRATION_MAGIC,
					      .version = REGISTRATION_VERSION,
					      .pid = getpid(),
					      .library_version = 1 << 8,
					      .previous_epoch = epoch };
}

/* Returns the mapped report, or NULL if the daemon refused. */
static struct region_report *join(uint64_t epoch, unsigned *ret_slot)
{
	struct registration_request request = request_of(epoch);
	struct registration_reply reply = { .status = -1 };
	char control[256];
	struct iovec iov = { &reply, sizeof(reply) };
	struct msghdr message = { .msg_iov = &iov,
				  .msg_iovlen = 1,
				  .msg_control = control,
				  .msg_controllen = sizeof(control) };
	int fd = connect_to("ALLOT_SOCKET", SOCK_SEQPACKET), fds[2];
	if (fd < 0)
		return NULL;
	send(fd, &request, sizeof(request), MSG_NOSIGNAL);
	ssize_t n = recvmsg(fd, &message, 0);
	close(fd);
	if (n < (ssize_t)sizeof(reply) || reply.status || !CMSG_FIRSTHDR(&message))
		return NULL;
	memcpy(fds, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof(fds));
	void *report = mmap(NULL, sizeof(struct region_report), PROT_READ | PROT_WRITE, MAP_SHARED,
			    fds[1], 0);
	close(fds[0]);
	close(fds[1]);
	*ret_slot = reply.slot;
	return report == MAP_FAILED ? NULL : report;
}

static int call(int fd, struct sim_request_msg m)
{
	static uint32_t number;
	struct sim_reply_msg reply;
	size_t used = 0;
	m.req = ++number;
	m.stamp_ns = sim_clock_ns();
	if (write(fd, &m, sizeof(m)) != (ssize_t)sizeof(m))
		return -1;
	while (used < sizeof(reply)) {
		ssize_t n = read(fd, (char *)&reply + used, sizeof(reply) - used);
		if (n <= 0)
			return -1;
		used += (size_t)n;
	}
	return reply.status;
}

static void hold_without_context(struct region_slot *slot, uint64_t bytes)
{
	int fd = connect_to("ALLOT_SIM_SOCKET", SOCK_STREAM);
	if (fd < 0 ||
	    call(fd, (struct sim_request_msg){ .type = SIM_HELLO,
					       .arg = { SIM_WIRE_MAGIC, SIM_KIND_CUDA,
							sim_clock_ns() } }) ||
	    call(fd, (struct sim_request_msg){ .type = SIM_MEM_NEW,
					       .arg = { bytes, SIM_BLOCK_CONTEXT } }))
		exit(4);
	slot->device[0].used_bytes = slot->device[0].context_used_bytes = bytes;
	slot->device[0].launches = 1;
}

static void send_pieces(void)
{
	unsigned char bytes[512];
	struct registration_request request = request_of((uint64_t)rand());
	size_t size = (size_t)rand() % sizeof(bytes);
	int fd = connect_to("ALLOT_SOCKET", SOCK_SEQPACKET);
	if (fd < 0)
		return;
	for (size_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = (unsigned char)rand();
	if (rand() % 2)
		memcpy(bytes, &request, sizeof(request));
	else if (rand() % 2)
		bytes[0] = '{';
	send(fd, bytes, size, MSG_DONTWAIT | MSG_NOSIGNAL);
	close(fd);
}

int main(int argc, char **argv)
{
	unsigned slot_number = 0, again;
	struct region_report *report = join(0, &slot_number);
	if (argc != 3 || !report)
		return 3;
	struct region_slot *slot = &report->slot[slot_number];
	const char *way = argv[1];
	slot->own_pid = getpid();
	if (!strcmp(way, "low"))
		hold_without_context(slot, strtoull(argv[2], NULL, 10) << 20);
	puts("begun");
	fflush(stdout);
	if (!strcmp(way, "low"))
		pause();
	uint64_t end_ns = sim_clock_ns() + (uint64_t)(atof(argv[2]) * 1e9);
	for (uint64_t i = 1; sim_clock_ns() < end_ns; i++) {
		if (!strcmp(way, "busy")) {
			slot->device[0].busy = slot->device[0].launching = 1;
			slot->device[0].inflight_ns = 1000000000;
			slot->device[0].busy_ns += 500000;
			slot->device[0].launches++;
			usleep(500);
		} else if (!strcmp(way, "ring")) {
			report->want[slot_number][0].bytes = i << 20;
			report->want[slot_number][0].ask++;
			report->bell[0].ring_count++;
		} else if (!strcmp(way, "rejoin")) {
			struct region_report *other = join(1000 + i, &again);
			if (other)
				munmap(other, sizeof(*other));
		} else {
			send_pieces();
		}
	}
	return 0;
}
