#include "fixture.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "daemon/api/dispatch.h"
#include "daemon/subsystems.h"
#include "daemon/util/lock.h"

/* ---- pretended cards ---- */

struct fake_gpu fake_gpu;

struct gpu {
	int unused;
};
static struct gpu the_gpu;

static int fake_open(const char *source, struct gpu **ret, struct error *err)
{
	*ret = &the_gpu;
	return 0;
}

static struct gpu *fake_close(struct gpu *gpu)
{
	return NULL;
}

static unsigned fake_count(struct gpu *gpu)
{
	return fake_gpu.count;
}

static const char *fake_version(struct gpu *gpu)
{
	return "1.0";
}

static int fake_info(struct gpu *gpu, unsigned index, struct gpu_info *ret, struct error *err)
{
	*ret = (struct gpu_info){ .memory_bytes = FAKE_CARD_BYTES };
	snprintf(ret->uuid_text, sizeof(ret->uuid_text), "GPU-00000000-0000-0000-0000-%012u",
		 index + 1);
	snprintf(ret->name, sizeof(ret->name), "Pretended");
	return gpu_uuid_parse(ret->uuid_text, ret->uuid);
}

static int fake_memory(struct gpu *gpu, unsigned index, struct gpu_memory *ret, struct error *err)
{
	*ret = (struct gpu_memory){ .used_bytes = fake_gpu.used_bytes,
				    .total_bytes = FAKE_CARD_BYTES };
	return 0;
}

static int fake_processes(struct gpu *gpu, unsigned index, struct gpu_process *list, size_t max,
			  size_t *ret_count, struct error *err)
{
	*ret_count = 0;
	if (index == 0 && fake_gpu.pid) {
		list[0] = (struct gpu_process){ .pid = fake_gpu.pid,
						.used_known = true,
						.used_bytes = fake_gpu.pid_bytes };
		*ret_count = 1;
	}
	return 0;
}

/* The first card is on NUMA node 3; nothing is known of where the others sit. */
static struct gpu_locality fake_locality(struct gpu *gpu, unsigned index)
{
	if (index > 0)
		return (struct gpu_locality){ 0 };
	return (struct gpu_locality){ .pci = "0000:01:00.0", .numa_known = true, .numa = 3 };
}

/* Any two have two NVLinks. */
static int fake_links(struct gpu *gpu, struct gpu_link *ret, struct error *err)
{
	for (unsigned i = 0; i < fake_gpu.count * fake_gpu.count; i++)
		ret[i] = (struct gpu_link){ .nvlinks = 2, .way = GPU_WAY_PXB };
	return 0;
}

const struct gpu_backend fake_backend = {
	.name = "fake",
	.open = fake_open,
	.close = fake_close,
	.count = fake_count,
	.driver_version = fake_version,
	.info = fake_info,
	.memory = fake_memory,
	.processes = fake_processes,
	.locality = fake_locality,
	.links = fake_links,
};

/* ---- the daemon ---- */

/*
 * In place of the C library's. The daemon gives tenants' sockets to their users, which only root may do. If another user runs the
 * test, the files stay that user's, and the daemon does not notice.
 */
int lchown(const char *path, uid_t uid, gid_t gid)
{
	int r = fchownat(AT_FDCWD, path, uid, gid, AT_SYMLINK_NOFOLLOW);
	return r < 0 && errno == EPERM && geteuid() != 0 ? 0 : r;
}

/* As the daemon does: each tenant takes several descriptors. */
static void raise_descriptor_limit(void)
{
	struct rlimit limit;
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
	limit.rlim_cur = limit.rlim_max;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
}

const char *fixture_base = "/tmp";
static char lock_paths[LOCK_DIRS][80];
static const char *lock_dirs[LOCK_DIRS] = { lock_paths[0], lock_paths[1], lock_paths[2] };

/* Containers get a library; its contents do not matter here. */
static void write_library(const char *path)
{
	FILE *file = fopen(path, "we");
	assert_non_null(file);
	fputs("a library", file);
	assert_int_equal(fclose(file), 0);
}

void fixture_start(struct fixture *f)
{
	struct error err = { 0 };
	f->node = calloc(1, sizeof(*f->node));
	assert_non_null(f->node);
	config_default(&f->node->config);
	f->node->config.linger_ns = 50 * NSEC_PER_MSEC;
	f->node->config.census_ns = 50 * NSEC_PER_MSEC;
	snprintf(f->node->config.container_library, CONFIG_PATH_MAX, "%s/liballot.so", f->dir);
	write_library(f->node->config.container_library);
	f->node->is_private = true;
	f->node->admin_gid = (gid_t)-1;
	snprintf(f->node->run_dir, sizeof(f->node->run_dir), "%s/run", f->dir);
	if (node_open(f->node, &fake_backend, "", &err) < 0)
		fail_msg("node_open: %s", err.text);
	memset(&f->session, 0, sizeof(f->session));
	f->session.node = f->node;
	f->session.pid = getpid();
	f->session.uid = geteuid();
}

void fixture_stop(struct fixture *f)
{
	node_close(f->node);
	free(f->node);
	f->node = NULL;
}

int fixture_setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));
	char path[80];
	assert_non_null(f);
	*state = f;
	raise_descriptor_limit();
	snprintf(f->dir, sizeof(f->dir), "%s/allot-test-XXXXXX", fixture_base);
	if (!mkdtemp(f->dir))
		return -1;
	snprintf(path, sizeof(path), "%s/run", f->dir);
	mkdir(path, 0700);
	for (unsigned i = 0; i < LOCK_DIRS; i++)
		snprintf(lock_paths[i], sizeof(lock_paths[i]), "%s/lock%u", f->dir, i);
	lock_set_dirs(lock_dirs);
	fake_gpu.count = 2;
	fake_gpu.used_bytes = 0;
	fake_gpu.pid = 0;
	fixture_start(f);
	return 0;
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	return remove(path);
}

int fixture_teardown(void **state)
{
	struct fixture *f = *state;
	if (!f)
		return 0;
	*state = NULL;
	if (f->node)
		fixture_stop(f);
	nftw(f->dir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
	free(f);
	return 0;
}

void fixture_turn(struct fixture *f, unsigned ms)
{
	uint64_t end_ns = clock_now_ns() + ms * NSEC_PER_MSEC;
	/* On a busy machine, one step may take longer than all of the time. */
	for (unsigned steps = 0; steps < ms || clock_now_ns() < end_ns; steps++)
		loop_step(f->node->loop, 1);
}

/* ---- requests ---- */

json_t *fixture_request(struct fixture *f, const char *line)
{
	char *reply = dispatch_request(&f->session, line, strlen(line));
	assert_non_null(reply);
	assert_int_equal(reply[strlen(reply) - 1], '\n');
	json_t *json = json_loads(reply, 0, NULL);
	assert_non_null(json);
	free(reply);
	return json;
}

json_t *fixture_ok(struct fixture *f, const char *line)
{
	json_t *reply = fixture_request(f, line);
	if (!json_is_true(json_object_get(reply, "ok")))
		fail_msg("%s: %s", line, json_string_value(json_object_get(reply, "error")));
	return reply;
}

void fixture_refused(struct fixture *f, const char *line, int code, const char *word)
{
	json_t *reply = fixture_request(f, line);
	const char *text = json_string_value(json_object_get(reply, "error"));
	assert_true(json_is_false(json_object_get(reply, "ok")));
	if (!text || !strstr(text, word) || strchr(text, '\n'))
		fail_msg("%s: '%s' does not say '%s'", line, text, word);
	if (json_integer_value(json_object_get(reply, "errno")) != code)
		fail_msg("%s: '%s' has errno %d, not %d", line, text,
			 (int)json_integer_value(json_object_get(reply, "errno")), code);
	json_decref(reply);
}

/* ---- a registered client ---- */

int client_connect_path(const char *path)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	strcpy(address.sun_path, path);
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (connect(fd, (struct sockaddr *)&address, sizeof(address)) < 0) {
		close(fd);
		return -1;
	}
	return fd;
}

int client_connect(const struct tenant *tenant)
{
	char path[NODE_PATH_MAX];
	tenant_path(tenant, "allot.sock", path);
	return client_connect_path(path);
}

static void receive(int fd, struct client *ret)
{
	union {
		struct cmsghdr align;
		char space[256];
	} control;
	struct client c = { .control_fd = -1, .report_fd = -1 };
	struct iovec iov = { .iov_base = &c.reply, .iov_len = sizeof(c.reply) };
	struct msghdr message = { .msg_iov = &iov,
				  .msg_iovlen = 1,
				  .msg_control = control.space,
				  .msg_controllen = sizeof(control.space) };
	if (recvmsg(fd, &message, MSG_CMSG_CLOEXEC) != (ssize_t)sizeof(c.reply)) {
		c.reply.status = ECONNRESET;
		*ret = c;
		return;
	}
	/* Credentials may come along: the daemon's socket passes them. */
	for (struct cmsghdr *m = CMSG_FIRSTHDR(&message); m; m = CMSG_NXTHDR(&message, m))
		if (m->cmsg_type == SCM_RIGHTS) {
			int fds[2];
			memcpy(fds, CMSG_DATA(m), sizeof(fds));
			c.control_fd = fds[0];
			c.report_fd = fds[1];
		}
	if (c.reply.status == 0) {
		c.control = mmap(NULL, sizeof(*c.control), PROT_READ, MAP_SHARED, c.control_fd, 0);
		c.report = mmap(NULL, sizeof(*c.report), PROT_READ | PROT_WRITE, MAP_SHARED,
				c.report_fd, 0);
	}
	*ret = c;
}

void client_register(struct fixture *f, int fd, uint64_t previous_epoch, struct client *ret)
{
	struct registration_request request = { .magic = REGISTRATION_MAGIC,
						.version = REGISTRATION_VERSION,
						.pid = getpid(),
						.previous_epoch = previous_epoch };
	struct pollfd p = { .fd = fd, .events = POLLIN };
	ssize_t sent = send(fd, &request, sizeof(request), MSG_NOSIGNAL);
	(void)sent; /* a refused connection answers all the same */
	for (unsigned i = 0; f && i < 2000 && poll(&p, 1, 0) == 0; i++)
		fixture_turn(f, 1);
	receive(fd, ret);
	close(fd);
}

void client_close(struct client *client)
{
	if (client->control) {
		munmap((void *)(uintptr_t)client->control, sizeof(*client->control));
		munmap(client->report, sizeof(*client->report));
	}
	if (client->control_fd >= 0)
		close(client->control_fd);
	if (client->report_fd >= 0)
		close(client->report_fd);
}

int client_spawn(struct fixture *f, const struct tenant *tenant, uint64_t previous_epoch,
		 client_act act)
{
	int fds[2];
	assert_int_equal(pipe(fds), 0);
	char path[NODE_PATH_MAX];
	tenant_path(tenant, "allot.sock", path);
	int pid = fork();
	if (pid == 0) {
		struct client c;
		/* The daemon's locks must not live on in here. */
		dup2(fds[1], 3);
		syscall(SYS_close_range, 4U, ~0U, 0U);
		int fd = client_connect_path(path);
		if (fd < 0)
			_exit(1);
		client_register(NULL, fd, previous_epoch, &c);
		if (c.reply.status)
			_exit(2);
		if (act)
			act(&c);
		if (write(3, "x", 1) != 1)
			_exit(3);
		for (;;)
			pause();
	}
	close(fds[1]);
	struct pollfd p = { .fd = fds[0], .events = POLLIN };
	for (unsigned i = 0; i < 5000 && poll(&p, 1, 0) == 0; i++)
		fixture_turn(f, 1);
	assert_int_equal(p.revents & POLLIN, POLLIN);
	close(fds[0]);
	return pid;
}

void client_kill(int pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}
