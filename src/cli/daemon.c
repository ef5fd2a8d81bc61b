#include "cli/daemon.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>

#include "base/paths.h"
#include "base/install.h"
#include "base/fd/unix_connect.h"
#include "cli/probe.h"
#include "cli/spawn.h"
#include "client/find.h"

#define START_TIMEOUT_MS 20000

/* Writes "gpu" or for example "sim-h200", which determines the run directory; "" if the user named a run directory. */
static int name_hardware(const struct daemon_target *target, char ret_name[PATHS_HARDWARE_MAX],
			 struct error *err)
{
	int r = 0;

	if (target->run_dir)
		ret_name[0] = '\0';
	else
		r = paths_hardware(target->sim_spec, ret_name, err);
	return r < 0 ? error_add(err, r, "--sim") : 0;
}

static int private_run_dir(const struct daemon_target *target, char ret_dir[PATHS_MAX],
			   struct error *err)
{
	char hardware[PATHS_HARDWARE_MAX];
	int r = name_hardware(target, hardware, err);

	return r < 0 ? r : client_own_run_dir(hardware, target->run_dir, ret_dir, err);
}

int daemon_find(const struct daemon_target *target, struct client **ret_client, struct error *err)
{
	char hardware[PATHS_HARDWARE_MAX], simulated[PATHS_MAX];
	struct error invalid;
	int r = name_hardware(target, hardware, err);

	if (r >= 0)
		r = client_find(hardware, target->run_dir, ret_client, err);
	/* For an invalid --sim no daemon can exist, so report the invalid --sim instead of the missing daemon. */
	if (r == -ENOENT && target->sim_spec && probe_sim(target->sim_spec, &invalid) == -EINVAL) {
		if (err)
			*err = invalid;
		return -EINVAL;
	}
	if (r == -ENOENT && err && !target->sim_spec && !target->run_dir &&
	    daemon_find_simulated(simulated))
		return error_set(err, ENOENT,
				 "no daemon runs for this machine's GPUs; for the simulated GPU "
				 "in use, add --run-dir %s",
				 simulated);
	return r;
}

/* Closing the descriptor releases the lock. */
static int lock_start(const char *run_dir, int *ret_fd, struct error *err)
{
	char path[PATHS_MAX];
	cleanup_fd int fd = -1;
	int r = paths_join(run_dir, "start.lock", path, sizeof(path), err);

	if (r < 0)
		return r;
	fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0)
		return error_set_errno(err, errno, "%s", path);
	do
		r = flock(fd, LOCK_EX);
	while (r < 0 && errno == EINTR);
	if (r < 0)
		return error_set_errno(err, errno, "%s: can't be locked", path);
	*ret_fd = steal_fd(&fd);
	return 0;
}

/* Returns true if a server listens at the socket, even if it is suspended and its queue of connections is full. Never waits. */
static bool answers(const char *socket_path)
{
	static const int types[] = { SOCK_STREAM, SOCK_SEQPACKET };

	for (size_t i = 0; i < 2; i++) {
		cleanup_fd int fd = unix_connect(socket_path, types[i] | SOCK_NONBLOCK);

		if (fd >= 0 || fd == -EAGAIN)
			return true;
	}
	return false;
}

/* If the simulated GPU's server runs already, *ret_pid is 0. */
static int start_sim(const char *run_dir, const char *spec, const char *sim_socket, pid_t *ret_pid,
		     struct error *err)
{
	char server[PATHS_MAX], log[PATHS_MAX], file[PATHS_MAX];
	pid_t pid = 0;
	int r;

	if (answers(sim_socket)) {
		*ret_pid = 0;
		return 0;
	}
	r = install_find(INSTALL_SIM_SERVER, server, err);
	if (r < 0)
		return r;
	r = paths_join(run_dir, "sim.log", log, sizeof(log), err);
	if (r < 0)
		return r;
	/* The server has another working directory, so pass the file's full path. */
	if (strpbrk(spec, "/.") && realpath(spec, file))
		spec = file;
	char *const argv[] = { server,
			       (char *)"--socket",
			       (char *)sim_socket,
			       (char *)"--spec",
			       (char *)spec,
			       (char *)"--ready-fd",
			       (char *)SPAWN_READY_FD_STRING,
			       NULL };
	r = spawn_server(argv, log, START_TIMEOUT_MS, &pid, err);
	if (r < 0)
		return error_add(err, r, "--sim");
	*ret_pid = pid;
	return 0;
}

/* Writes a full path, because the daemon has another working directory; "" if the variable is unset. */
static int find_file(const char *variable, char path[PATH_MAX], struct error *err)
{
	const char *named = getenv(variable);

	path[0] = '\0';
	if (!named || !*named)
		return 0;
	if (!realpath(named, path))
		return error_set_errno(err, errno, "%s: '%.200s'", variable, named);
	return 0;
}

static int start_daemon(const struct daemon_target *target, const char *run_dir,
			const char *sim_socket, struct error *err)
{
	char daemon[PATHS_MAX], nvml[PATHS_MAX], log[PATHS_MAX];
	char config[PATH_MAX], tuning[PATH_MAX];
	char *argv[18];
	size_t n = 0;
	int r = install_find(INSTALL_DAEMON, daemon, err);

	if (r < 0)
		return r;
	r = paths_join(run_dir, "allotd.log", log, sizeof(log), err);
	if (r < 0)
		return r;
	argv[n++] = daemon;
	argv[n++] = (char *)"--private";
	argv[n++] = (char *)"--run-dir";
	argv[n++] = (char *)run_dir;
	argv[n++] = (char *)"--ready-fd";
	argv[n++] = (char *)SPAWN_READY_FD_STRING;
	if (target->policy) {
		argv[n++] = (char *)"--policy";
		argv[n++] = (char *)target->policy;
	}
	r = find_file("ALLOT_CONFIG", config, err);
	if (r >= 0)
		r = find_file("ALLOT_TUNING", tuning, err);
	if (r < 0)
		return r;
	if (*config) {
		argv[n++] = (char *)"--config";
		argv[n++] = config;
	}
	if (*tuning) {
		argv[n++] = (char *)"--tuning";
		argv[n++] = tuning;
	}
	if (sim_socket) {
		r = install_find(INSTALL_SIM_NVML, nvml, err);
		if (r < 0)
			return r;
		argv[n++] = (char *)"--sim-socket";
		argv[n++] = (char *)sim_socket;
		argv[n++] = (char *)"--nvml";
		argv[n++] = nvml;
	}
	argv[n] = NULL;
	r = spawn_server(argv, log, START_TIMEOUT_MS, NULL, err);
	return r < 0 ? error_add(err, r, "the daemon did not start") : 0;
}

/* Call under the lock of lock_start() while no daemon runs. */
static int start_all(const struct daemon_target *target, const char *run_dir, struct error *err)
{
	char sim_socket[PATHS_MAX];
	pid_t sim_pid = 0;
	int r;

	if (!target->sim_spec)
		return start_daemon(target, run_dir, NULL, err);
	r = paths_join(run_dir, "sim.sock", sim_socket, sizeof(sim_socket), err);
	if (r < 0)
		return r;
	r = start_sim(run_dir, target->sim_spec, sim_socket, &sim_pid, err);
	if (r < 0)
		return r;
	r = start_daemon(target, run_dir, sim_socket, err);
	if (r < 0 && sim_pid > 0)
		kill(sim_pid, SIGTERM);
	return r;
}

static int get_private(const struct daemon_target *target, const char *run_dir,
		       struct client **ret_client, struct error *err)
{
	cleanup_fd int lock = -1;
	int r = client_connect(run_dir, ret_client, err);

	if (r != -ENOENT)
		return r;
	/* Check for predictable failures before anything is created. */
	if (!target->sim_spec) {
		r = probe_gpu(err);
		if (r < 0)
			return r;
	}
	r = paths_make_private(run_dir, err);
	if (r < 0)
		return r;
	r = lock_start(run_dir, &lock, err);
	if (r < 0)
		return r;
	r = client_connect(run_dir, ret_client, err);
	if (r != -ENOENT)
		return r;
	r = start_all(target, run_dir, err);
	return r < 0 ? r : client_connect(run_dir, ret_client, err);
}

int daemon_find_or_start(const struct daemon_target *target, struct client **ret_client,
			 struct error *err)
{
	char hardware[PATHS_HARDWARE_MAX], dir[PATHS_MAX];
	int r = name_hardware(target, hardware, err);

	if (r < 0)
		return r;
	r = client_find_system(hardware, target->run_dir, ret_client, err);
	if (r != -ENOENT)
		return r;
	r = client_own_run_dir(hardware, target->run_dir, dir, err);
	return r < 0 ? r : get_private(target, dir, ret_client, err);
}

int daemon_reconnect(const struct daemon_target *target, const char *run_dir,
		     struct client **ret_client, struct error *err)
{
	char own[PATHS_MAX];
	int r = private_run_dir(target, own, err);

	if (r < 0)
		return r;
	if (strcmp(own, run_dir) == 0)
		return get_private(target, run_dir, ret_client, err);
	r = client_connect(run_dir, ret_client, err);
	return r == -ENOENT ? -EAGAIN : r;
}

bool daemon_find_simulated(char ret_run_dir[PATHS_MAX])
{
	char base[PATHS_MAX], run_dir[PATHS_MAX], socket_path[PATHS_MAX];
	cleanup_dir DIR *dir = NULL;
	struct dirent *entry;
	char *slash;

	if (paths_private_run_dir("gpu", base, NULL) < 0)
		return false;
	slash = strrchr(base, '/');
	*slash = '\0';
	dir = opendir(base);
	while (dir && (entry = readdir(dir))) {
		if (strncmp(entry->d_name, "sim-", 4) != 0 ||
		    paths_join(base, entry->d_name, run_dir, sizeof(run_dir), NULL) < 0 ||
		    paths_join(run_dir, "allotd.sock", socket_path, sizeof(socket_path), NULL) < 0)
			continue;
		if (answers(socket_path)) {
			strcpy(ret_run_dir, run_dir);
			return true;
		}
	}
	return false;
}
