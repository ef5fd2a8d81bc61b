/* Starts and ends the daemon. Between the two, the event loop calls the parts that subsystems.c has started. */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "base/paths.h"
#include "daemon/api/audit/audit.h"
#include "daemon/kubelet/kube/kube.h"
#include "daemon/memory/checkpoint/checkpoint_helper.h"
#include "daemon/state/node/node.h"
#include "daemon/subsystems.h"
#include "daemon/util/lock.h"
#include "daemon/options.h"
#include "daemon/util/service_notify.h"

static struct node node; /* static because it is large */

/*
 * Returns only in the child, which is in its own session. The parent exits: with 0 when the child writes a byte to *ret_fd, or
 * with 1 when the child ends without one.
 */
static int go_to_background(int *ret_fd, struct error *err)
{
	int fds[2];
	if (pipe2(fds, O_CLOEXEC) < 0)
		return error_set_errno(err, errno, "pipe");
	pid_t pid = fork();
	if (pid < 0)
		return error_set_errno(err, errno, "fork");
	if (pid > 0) {
		char c;
		close(fds[1]);
		_exit(read(fds[0], &c, 1) == 1 ? 0 : 1);
	}
	close(fds[0]);
	setsid();
	*ret_fd = fds[1];
	return 0;
}

static void leave_terminal(const char *run_dir)
{
	char path[NODE_PATH_MAX];
	snprintf(path, sizeof(path), "%s/allotd.log", run_dir);
	cleanup_fd int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	cleanup_fd int log = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW,
				  0600);
	if (null >= 0) {
		dup2(null, STDIN_FILENO);
		dup2(null, STDOUT_FILENO);
		dup2(log >= 0 ? log : null, STDERR_FILENO);
	}
}

static void write_ready(int *fd)
{
	static const char text[] = "ready\n";
	if (*fd >= 0 && write(*fd, text, sizeof(text) - 1) < 0)
		log_debug("the program that started this daemon no longer waits for it: %s",
			  strerror(errno));
	close_fd(fd);
}

static int prepare_run_dir(const struct options *options, struct error *err)
{
	char dir[PATHS_MAX];
	int r = 0;
	if (options->run_dir)
		snprintf(dir, sizeof(dir), "%s", options->run_dir);
	else if (node.is_private)
		r = paths_private_run_dir("gpu", dir, err);
	else
		r = paths_system_run_dir("gpu", dir, err);
	if (r < 0)
		return r;
	if (!node.is_private)
		r = paths_make_system(dir, err);
	else if (options->run_dir && (mkdir(dir, 0700) == 0 || errno == EEXIST))
		r = paths_check_private(dir, err);
	else
		r = paths_make_private(dir, err);
	if (r < 0)
		return r;
	cleanup_free char *real = realpath(dir, NULL);
	if (!real)
		return error_set_errno(err, errno, "%s", dir);
	if (strlen(real) >= NODE_RUN_DIR_MAX)
		return error_set(
			err, ENAMETOOLONG,
			"run directory %s: its path must have at most %d bytes, because sockets "
			"are made in it: use another --run-dir",
			real, NODE_RUN_DIR_MAX - 1);
	r = paths_check_text(real, err);
	if (r >= 0)
		strcpy(node.run_dir, real);
	return r;
}

static int prepare_sim(const char *socket_path, struct error *err)
{
	if (!socket_path)
		return 0;
	cleanup_free char *real = realpath(socket_path, NULL);
	if (!real)
		return error_set_errno(err, errno, "simulated GPU: %s", socket_path);
	if (strlen(real) >= sizeof(node.sim_socket))
		return error_set(err, ENAMETOOLONG,
				 "simulated GPU: %s: this path must have at most %zu bytes: "
				 "use a shorter one",
				 real, sizeof(node.sim_socket) - 1);
	strcpy(node.sim_socket, real);
	node.simulated = true;
	/* The simulated NVML reads this variable. */
	return setenv("ALLOT_SIM_SOCKET", real, 1) < 0
		       ? error_set_errno(
				 err, errno,
				 "simulated GPU: can't set the environment variable ALLOT_SIM_SOCKET")
		       : 0;
}

static void raise_descriptor_limit(void)
{
	struct rlimit limit;
	if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
		limit.rlim_cur = limit.rlim_max;
		setrlimit(RLIMIT_NOFILE, &limit);
	}
}

static gid_t find_admin_group(void)
{
	const struct group *group = getgrnam("allot");
	return group ? group->gr_gid : (gid_t)-1;
}

static int signal_fd = -1;

/*
 * In a cluster, the daemon ends only when no pod can still need it. First it tells the API server that this node offers
 * nothing. Then it waits until the kubelet has asked for the shares of all pods that are already bound, because the kubelet
 * fails a pod if the daemon is gone. A scheduler may not have seen the withdrawal yet, so the daemon also waits until no pod
 * was being bound for QUIET_NS. A second signal ends the daemon at once.
 */
#define WITHDRAW_NS (2 * NSEC_PER_SEC) /* longest wait for the API server */
#define QUIET_NS NSEC_PER_SEC
/* longest wait for pods that are being bound; below the 30 s that the kubelet gives the daemon's own pod to end */
#define DEPART_NS (20 * NSEC_PER_SEC)
#define DEPART_LOOK_NS (50 * NSEC_PER_MSEC)
static struct loop_source *departing;
static uint64_t departing_since_ns, quiet_since_ns;

static void check_withdrawal(void *data, uint32_t events)
{
	uint64_t now_ns = clock_now_ns(), waited_ns = now_ns - departing_since_ns;
	enum kube_withdrawal departure = node_kube_withdrawal(node.kube);
	bool is_late = waited_ns > (departure == KUBE_WITHDRAWING ? WITHDRAW_NS : DEPART_NS);
	if (departure == KUBE_PODS_ON_WAY && is_late)
		log_warning(
			"allotd ends while a pod is being bound to this node, so the kubelet may fail that pod: "
			"if that happens, create the pod anew");
	if (departure != KUBE_MAY_END)
		quiet_since_ns = now_ns;
	if (now_ns - quiet_since_ns > QUIET_NS || is_late)
		loop_quit(node.loop);
}

static bool depart(void)
{
	if (departing || !node_kube_withdraw(node.kube) ||
	    loop_add_timer(node.loop, check_withdrawal, NULL, &departing) < 0)
		return false;
	departing_since_ns = quiet_since_ns = clock_now_ns();
	loop_arm(departing, DEPART_LOOK_NS, DEPART_LOOK_NS);
	return true;
}

static void signal_received(void *data, uint32_t events)
{
	struct signalfd_siginfo info;
	if (read(signal_fd, &info, sizeof(info)) != (ssize_t)sizeof(info))
		return;
	if (info.ssi_signo == SIGHUP) {
		audit_reopen(node.audit);
		return;
	}
	log_info("signal %d: ending; tenants go on", (int)info.ssi_signo);
	if (!depart())
		loop_quit(node.loop);
}

/* Makes signal_fd receive SIGTERM, SIGINT and SIGHUP. Call before threads start, since they inherit the blocked signals. */
static int block_signals(struct error *err)
{
	sigset_t set;
	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGHUP);
	signal(SIGPIPE, SIG_IGN);
	sigprocmask(SIG_BLOCK, &set, NULL);
	signal_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	return signal_fd < 0 ? error_set_errno(err, errno, "can't receive signals") : 0;
}

static int start(struct options *options, int *run_lock, struct error *err)
{
	struct loop_source *signals;
	int r = block_signals(err);
	if (r >= 0)
		r = prepare_sim(options->sim_socket, err);
	if (r >= 0)
		r = prepare_run_dir(options, err);
	if (r < 0)
		return r;
	*run_lock = lock_run_dir(node.run_dir, err);
	if (*run_lock < 0)
		return *run_lock;
	r = node_open(&node, gpu_backend_find("nvml"), node.config.nvml, err);
	if (r < 0)
		return r;
	r = loop_add(node.loop, signal_fd, EPOLLIN, signal_received, NULL, &signals);
	return r < 0 ? error_set_errno(err, -r, "can't receive signals") : 0;
}

int main(int argc, char **argv)
{
	struct options options;
	struct error err = { 0 };
	struct service *service = NULL;
	int background_fd = -1, run_lock = -1;

	if (argc > 1 && !strcmp(argv[1], HELPER_OPTION))
		return checkpoint_helper_main(argc, argv);
	log_init("allotd");
	int status = options_parse(argc, argv, &options);
	if (status >= 0)
		return status;
	log_set_level(log_level_of(options.config.log_level));
	umask(077);
	raise_descriptor_limit();
	node.config = options.config;
	/* never freed; NULL if the file is gone */
	node.config_file = options.config_file ? realpath(options.config_file, NULL) : NULL;
	node.is_private = options.is_private || geteuid() != 0;
	node.lingers = options.is_private;
	node.admin_gid = find_admin_group();

	int r = 0;
	if (!options.foreground && options.ready_fd < 0)
		r = go_to_background(&background_fd, &err);
	if (r >= 0) {
		service = service_open();
		r = start(&options, &run_lock, &err);
	}
	if (r >= 0) {
		char what[64 + NODE_RUN_DIR_MAX];
		snprintf(what, sizeof(what), "%u GPU%s, %s", node.card_count,
			 node.card_count == 1 ? "" : "s", node.run_dir);
		log_info("ready: %s", what);
		if (background_fd >= 0)
			leave_terminal(node.run_dir);
		write_ready(&options.ready_fd);
		write_ready(&background_fd);
		service_ready(service, node.loop, what);
		r = loop_run(node.loop);
		if (r < 0)
			error_set_errno(&err, -r, "event loop");
	}
	if (r < 0)
		log_error("%s", err.text);
	service_close(service);
	node_close(&node);
	close_fd(&run_lock);
	return r < 0 ? 1 : 0;
}
