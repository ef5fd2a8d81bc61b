#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "client/client.h"
#include "cli/doctor/gather.h"
#include "cli/doctor/judge/judge.h"

#define ANSWER_MS 5000
#define ANSWER_MAX 65536

struct processes {
	struct doctor *d;
	struct facts_rivals *rivals;
};

static bool find_process(void *data, const char *name)
{
	struct processes *all = data;
	struct facts_process *p = &all->rivals->process[all->rivals->count];
	char path[PATH_MAX], command[FACT_NAME_MAX];

	if (!isdigit((unsigned char)name[0]))
		return true;
	snprintf(path, sizeof(path), "/proc/%s/comm", name);
	if (host_read(&all->d->host, path, command, sizeof(command)) <= 0)
		return true;
	command[strcspn(command, "\n")] = '\0';
	if (!judge_is_rival_process(command))
		return true;
	snprintf(p->name, sizeof(p->name), "%s", command);
	p->pid = atoi(name);
	return ++all->rivals->count < FACTS_MAX;
}

void gather_rivals(struct doctor *d, struct facts *facts)
{
	struct processes all = { d, &facts->rivals };

	host_each(&d->host, "/proc", find_process, &all);
	facts->rivals.has_hami_files = host_has(&d->host, "/usr/local/vgpu");
	facts->rivals.has_mps_pipe = host_has(&d->host, "/tmp/nvidia-mps/control");
}

static int connect_to(const char *path, struct facts_tenant *t)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };

	if (strlen(path) >= sizeof(address.sun_path)) {
		snprintf(t->fault, sizeof(t->fault),
			 "is too long for a socket's path (%zu bytes at most)",
			 sizeof(address.sun_path) - 1);
		return -1;
	}
	strcpy(address.sun_path, path);
	cleanup_fd int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd >= 0 && connect(fd, (struct sockaddr *)&address, sizeof(address)) == 0)
		return steal_fd(&fd);
	snprintf(t->fault, sizeof(t->fault), "%s", strerror(errno));
	return -1;
}

static json_t *request_tenant(int fd)
{
	static const char question[] = "{\"version\":1,\"op\":\"tenant\"}";
	struct pollfd one = { .fd = fd, .events = POLLIN };
	cleanup_free char *text = malloc(ANSWER_MAX);

	if (!text || send(fd, question, strlen(question), MSG_NOSIGNAL) < 0 ||
	    poll(&one, 1, ANSWER_MS) <= 0)
		return NULL;
	ssize_t n = recv(fd, text, ANSWER_MAX, 0);
	/* An older daemon answers with the error "registration invalid", which is JSON too. */
	return n > 0 ? json_loadb(text, (size_t)n, 0, NULL) : NULL;
}

static void read_devices(const json_t *list, struct facts_tenant *t)
{
	for (size_t i = 0; i < json_array_size(list) && t->devices < FACTS_MAX; i++) {
		const json_t *d = json_array_get(list, i);
		t->device[t->devices++] = (struct facts_tenant_device){
			.quota_bytes = (uint64_t)json_integer_value(
				json_object_get(d, "memory_quota_bytes")),
			.used_bytes = (uint64_t)json_integer_value(
				json_object_get(d, "memory_used_bytes")),
			.cores_pct = json_number_value(json_object_get(d, "cores_pct")),
			.limit_pct = json_number_value(json_object_get(d, "cores_limit_pct")),
		};
	}
}

/* Whether libcuda.so.1 is a shim: a library of `allot mirror` that loads liballot.so before the driver (mirror/shim.h). */
static bool has_shim(const struct host *host)
{
	char path[PATH_MAX];
	size_t size;

	if (!gather_library(host, "libcuda.so.1", path))
		return false;
	cleanup_free char *bytes = host_read_all(host, path, &size);
	return bytes && memmem(bytes, size, "liballot-shim-", strlen("liballot-shim-"));
}

void gather_tenant(struct doctor *d, struct facts *facts)
{
	struct facts_tenant *t = &facts->tenant;
	const char *path = getenv("ALLOT_SOCKET"), *preload = getenv("LD_PRELOAD");
	struct host here = { .root = "" };
	char *maps;

	if (!path || !host_is_local(&d->host))
		return;
	t->is_tenant = true;
	snprintf(t->socket, sizeof(t->socket), "%s", path);
	t->wants_control = !getenv("CUDA_DISABLE_CONTROL");
	t->is_command = preload && strstr(preload, "liballot.so");
	t->has_shim = has_shim(&here);
	maps = malloc(1 << 20);
	if (maps && host_read(&here, "/proc/self/maps", maps, 1 << 20) > 0)
		t->is_preloaded = strstr(maps, "/liballot.so");
	free(maps);
	cleanup_fd int fd = connect_to(path, t);
	if (fd < 0)
		return;
	cleanup_json json_t *reply = request_tenant(fd);
	const char *name = json_string_value(json_object_get(reply, "name"));
	t->is_known = name;
	if (!name)
		return;
	snprintf(t->name, sizeof(t->name), "%.*s", FACT_NAME_MAX - 1, name);
	t->is_paused = json_is_true(json_object_get(reply, "paused"));
	read_devices(json_object_get(reply, "devices"), t);
}
