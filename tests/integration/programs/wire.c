/*
 * Takes memory of the simulated card without any library: speaks to its server itself, as a static program
 * may speak to a driver's device files. Prints a line, and stays.
 *
 *     wire MIB
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "sim/wire.h"

static int call(int fd, struct sim_request_msg m)
{
	static uint32_t req;
	struct sim_reply_msg reply;
	size_t used = 0;
	m.req = ++req;
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

int main(int argc, char **argv)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	const char *path = getenv("ALLOT_SIM_SOCKET");
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);
	if (argc != 2 || !path || strlen(path) >= sizeof(address.sun_path))
		return 2;
	strcpy(address.sun_path, path);
	if (connect(fd, (struct sockaddr *)&address, sizeof(address)) < 0)
		return 3;
	if (call(fd, (struct sim_request_msg){ .type = SIM_HELLO,
					       .arg = { SIM_WIRE_MAGIC, SIM_KIND_CUDA,
							sim_clock_ns() } }) ||
	    call(fd, (struct sim_request_msg){ .type = SIM_MEM_NEW,
					       .arg = { 518ull << 20, SIM_BLOCK_CONTEXT } }) ||
	    call(fd, (struct sim_request_msg){
			     .type = SIM_MEM_NEW,
			     .arg = { strtoull(argv[1], NULL, 10) << 20, SIM_BLOCK_DATA } }))
		return 1;
	puts("full");
	fflush(stdout);
	pause();
	return 0;
}
