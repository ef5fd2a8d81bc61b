#include "daemon/memory/checkpoint/checkpoint.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"
#include "daemon/state/node/node.h"

#define FILE_PREFIX "keeper-"
#define KEY_MAX 72
/* Slowest speed that is allowed for a move, before the helper is killed: a tenth of a measured checkpoint's speed. */
#define BYTES_PER_S (UINT64_C(256) << 20)
/* A helper process waits at most this long for other tenants to make room on the GPUs, before it brings processes back. */
#define ROOM_NS (5 * NSEC_PER_SEC)
/* If more helper processes than this are lost in a row, the moved processes' place becomes PLACE_STUCK. */
#define RETRIES_MOST 3

struct checkpoint {
	struct node *node;
	char key[KEY_MAX];
	checkpoint_changed changed;
	void *data;
	enum checkpoint_place place;
	struct helper_order order;
	uint64_t begun_ns, moved_ns, failed;
	unsigned lost; /* helpers lost since a helper last answered */
	/* the order's first helper was lost, or the place was PLACE_STUCK before the order */
	bool is_place_unknown;
	char error_text[HELPER_TEXT_MAX];
	int fd, pidfd; /* socket and pidfd of the helper; -1: none */
	struct loop_source *source, *timer;
};

/* Prefers the libcuda beside the NVML that the settings name. */
static void find_cuda(const struct node *node, char path[CONFIG_PATH_MAX + 16])
{
	const char *slash = strrchr(node->config.nvml, '/');
	int length = slash ? (int)(slash - node->config.nvml) + 1 : 0;
	snprintf(path, CONFIG_PATH_MAX + 16, "%.*slibcuda.so.1", length, node->config.nvml);
	if (length && access(path, F_OK) < 0)
		strcpy(path, "libcuda.so.1");
}

static void file_path(const struct node *node, const char *key, char path[NODE_PATH_MAX])
{
	snprintf(path, NODE_PATH_MAX, "%s/" FILE_PREFIX "%s", node->run_dir, key);
}

/*
 * Runs in a forked child, and starts the helper as a grandchild. The child then ends, so init reaps the helper, which may live
 * longer than the daemon. Child and grandchild make only async-signal-safe calls, because the daemon has threads.
 */
static _Noreturn void spawn_detached(int fd, char *const *argv)
{
	pid_t pid = fork();
	if (pid != 0) {
		send(fd, &pid, sizeof(pid), MSG_NOSIGNAL);
		_exit(0);
	}
	setsid();
	if (fd != HELPER_FD) {
		dup2(fd, HELPER_FD);
		close(fd);
	} else {
		fcntl(fd, F_SETFD, 0);
	}
	execv("/proc/self/exe", argv);
	_exit(127);
}

/* The caller owns both descriptors; *ret_pidfd is -1 if the kernel has no pidfd. */
static int spawn(const struct node *node, const char *key, bool recovers, int *ret_fd,
		 int *ret_pidfd, struct error *err)
{
	char cuda[CONFIG_PATH_MAX + 16], nvml[CONFIG_PATH_MAX], file[NODE_PATH_MAX];
	char name[] = "allot-checkpoint", option[] = HELPER_OPTION, recover[] = HELPER_RECOVER;
	char *argv[] = { name, option, cuda, nvml, file, recovers ? recover : NULL, NULL };
	int fds[2];
	pid_t helper = -1;
	find_cuda(node, cuda);
	snprintf(nvml, sizeof(nvml), "%s", node->config.nvml);
	file_path(node, key, file);
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds) < 0)
		return error_set_errno(
			err, errno, "can't start the helper process that moves GPU memory: socket");
	cleanup_fd int fd = fds[0];
	pid_t child = fork();
	if (child == 0)
		spawn_detached(fds[1], argv);
	close_fd(&fds[1]); /* leaves errno as it is */
	if (child < 0)
		return error_set_errno(err, errno,
				       "can't start the helper process that moves GPU memory: fork");
	while (waitpid(child, NULL, 0) < 0 && errno == EINTR)
		;
	if (recv(fd, &helper, sizeof(helper), 0) != sizeof(helper) || helper < 0)
		return error_set(
			err, EAGAIN,
			"checkpoint: the helper process that moves GPU memory can't be started: "
			"the limit of processes may be reached");
	*ret_pidfd = (int)syscall(SYS_pidfd_open, helper, 0);
	*ret_fd = steal_fd(&fd);
	return 0;
}

static void disconnect(struct checkpoint *c)
{
	c->source = loop_remove(c->source);
	loop_disarm(c->timer);
	close_fd(&c->fd);
	close_fd(&c->pidfd);
}

static void reply_ready(void *data, uint32_t events);

static int send_order(struct checkpoint *c, struct error *err)
{
	int r = 0;
	if (c->fd < 0) {
		r = spawn(c->node, c->key, false, &c->fd, &c->pidfd, err);
		if (r >= 0)
			r = loop_add(c->node->loop, c->fd, EPOLLIN, reply_ready, c, &c->source);
		if (r < 0 && c->fd >= 0)
			error_set_errno(
				err, -r,
				"checkpoint: can't watch the helper process that moves GPU memory");
	}
	if (r >= 0 && send(c->fd, &c->order, sizeof(c->order), MSG_NOSIGNAL) < 0)
		r = error_set(
			err, errno,
			"GPU memory can't be moved: the helper process that moves it has gone (%s): "
			"try again",
			strerror(errno));
	if (r < 0) {
		disconnect(c);
		return r;
	}
	loop_arm(c->timer,
		 c->node->config.checkpoint_timeout_ns + c->order.room_ms * NSEC_PER_MSEC +
			 checkpoint_bytes(c) / BYTES_PER_S * NSEC_PER_SEC,
		 0);
	return 0;
}

static void prepare_order(struct checkpoint *c, enum checkpoint_goal goal)
{
	uint64_t timeout_ns = c->node->config.checkpoint_timeout_ns;
	c->order.goal = goal;
	c->order.lock_ms = (uint32_t)(timeout_ns / 3 / NSEC_PER_MSEC) + 1;
	c->order.room_ms = goal == CHECKPOINT_IN ? (uint32_t)(ROOM_NS / NSEC_PER_MSEC) : 0;
	c->place = goal == CHECKPOINT_IN ? PLACE_RETURNING : PLACE_LEAVING;
}

int checkpoint_order(struct checkpoint *c, struct helper_order *order, struct error *err)
{
	enum checkpoint_place before = c->place;
	if (before == PLACE_LEAVING || before == PLACE_RETURNING)
		return error_set(
			err, EBUSY,
			"the container's or tenant's GPU memory is being moved already (%s): wait, "
			"then try again",
			checkpoint_place_name(before));
	c->order = *order;
	c->begun_ns = clock_now_ns();
	c->lost = 0;
	c->is_place_unknown = before == PLACE_STUCK;
	c->error_text[0] = '\0';
	prepare_order(c, (enum checkpoint_goal)order->goal);
	int r = send_order(c, err);
	if (r < 0)
		c->place = before;
	return r;
}

static void finish_order(struct checkpoint *c, enum checkpoint_place place)
{
	loop_disarm(c->timer);
	c->moved_ns = clock_now_ns() - c->begun_ns;
	c->place = place;
	c->failed += c->error_text[0] != '\0';
	if (place == PLACE_IN)
		disconnect(c);
	c->changed(c->data, c);
}

/*
 * The helper ended without an answer or was killed. Another helper keeps the processes off the GPU if they were off
 * (PLACE_OUT), and otherwise brings them back. None is started if the place is PLACE_STUCK, or after RETRIES_MOST lost helpers.
 */
static void helper_lost(struct checkpoint *c, const char *why)
{
	struct error err = { 0 };
	bool is_retried = c->place != PLACE_STUCK && c->lost < RETRIES_MOST;
	disconnect(c);
	log_warning("tenant or container %s: the helper process that moves its GPU memory was "
		    "lost: %s; %s",
		    c->key, why,
		    is_retried ? "another one takes over"
			       : "its memory may be partly off the GPU: resume it to try again");
	if (c->place != PLACE_OUT)
		snprintf(c->error_text, sizeof(c->error_text), "%s", why);
	if (c->place == PLACE_STUCK)
		return;
	if (!is_retried) {
		finish_order(c, PLACE_STUCK);
		return;
	}
	c->lost++;
	c->is_place_unknown = true;
	bool is_out = c->place == PLACE_OUT;
	prepare_order(c, is_out ? CHECKPOINT_OUT : CHECKPOINT_IN);
	if (send_order(c, &err) >= 0)
		return;
	log_error("tenant or container %s is off its GPU, in whole or in part, and its memory "
		  "can't be moved: %s; resume it to try again",
		  c->key, err.text);
	finish_order(c, PLACE_STUCK);
}

static void reply_ready(void *data, uint32_t events)
{
	struct checkpoint *c = data;
	struct helper_answer answer;
	ssize_t n = recv(c->fd, &answer, sizeof(answer), MSG_DONTWAIT);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n != (ssize_t)sizeof(answer) ||
	    (c->place != PLACE_LEAVING && c->place != PLACE_RETURNING)) {
		helper_lost(c, "the helper process has ended");
		return;
	}
	answer.text[HELPER_TEXT_MAX - 1] = '\0';
	bool was_leaving = c->place == PLACE_LEAVING;
	c->lost = 0;
	if (answer.result != HELPER_DONE)
		snprintf(c->error_text, sizeof(c->error_text), "%s", answer.text);
	/* After STUCK, or after a lost helper, only a helper that looked knows where the processes are. */
	if (answer.result == HELPER_STUCK ||
	    (answer.result == HELPER_UNTRIED && c->is_place_unknown))
		finish_order(c, PLACE_STUCK);
	else if (answer.result == HELPER_DONE)
		finish_order(c, was_leaving ? PLACE_OUT : PLACE_IN);
	else
		finish_order(c, was_leaving ? PLACE_IN : PLACE_OUT);
}

static void timed_out(void *data, uint32_t events)
{
	struct checkpoint *c = data;
	if (c->pidfd >= 0)
		syscall(SYS_pidfd_send_signal, c->pidfd, SIGKILL, NULL, 0);
	helper_lost(c, "the driver did not answer in time");
}

enum checkpoint_place checkpoint_place(const struct checkpoint *c)
{
	return c ? c->place : PLACE_IN;
}

const char *checkpoint_place_name(enum checkpoint_place place)
{
	static const char *const names[] = { [PLACE_IN] = "in",
					     [PLACE_LEAVING] = "leaving",
					     [PLACE_OUT] = "out",
					     [PLACE_RETURNING] = "returning",
					     [PLACE_STUCK] = "stuck" };
	return names[place];
}

const char *checkpoint_error(const struct checkpoint *c)
{
	return c ? c->error_text : "";
}

uint64_t checkpoint_bytes(const struct checkpoint *c)
{
	uint64_t sum = 0;
	for (unsigned i = 0; i < HELPER_MAX_CARDS; i++)
		sum += c->order.bytes[i];
	return sum;
}

uint64_t checkpoint_moved_ns(const struct checkpoint *c)
{
	return c->moved_ns;
}

uint64_t checkpoint_failed(const struct checkpoint *c)
{
	return c->failed;
}

int checkpoint_new(struct node *node, const char *key, checkpoint_changed changed, void *data,
		   struct checkpoint **ret, struct error *err)
{
	cleanup_free struct checkpoint *c = calloc(1, sizeof(*c));
	if (!c)
		return error_set_errno(err, ENOMEM, "checkpoint");
	c->node = node;
	c->changed = changed;
	c->data = data;
	c->fd = c->pidfd = -1;
	snprintf(c->key, sizeof(c->key), "%s", key);
	int r = loop_add_timer(node->loop, timed_out, c, &c->timer);
	if (r < 0)
		return error_set_errno(err, -r, "checkpoint: timer");
	*ret = steal_pointer(&c);
	return 0;
}

struct checkpoint *checkpoint_free(struct checkpoint *c)
{
	if (!c)
		return NULL;
	disconnect(c);
	loop_remove(c->timer);
	free(c);
	return NULL;
}

void checkpoint_recover(struct node *node, bool (*keeps)(struct node *node, const char *key))
{
	cleanup_dir DIR *dir = opendir(node->run_dir);
	for (struct dirent *entry; dir && (entry = readdir(dir));) {
		const char *key = entry->d_name + strlen(FILE_PREFIX);
		struct error err = { 0 };
		int fd = -1, pidfd = -1;
		if (strncmp(entry->d_name, FILE_PREFIX, strlen(FILE_PREFIX)) != 0 ||
		    strlen(key) >= KEY_MAX || keeps(node, key))
			continue;
		log_info("tenant or container %s: the previous daemon had moved its GPU memory to "
			 "host memory: this memory is now moved back to the GPU",
			 key);
		if (spawn(node, key, true, &fd, &pidfd, &err) < 0)
			log_error("tenant or container %s: its GPU memory can't be moved back from "
				  "host memory, so its GPU work stays stopped: %s; restart allotd "
				  "to try again",
				  key, err.text);
		close_fd(&fd);
		close_fd(&pidfd);
	}
}
