#include "daemon/space/mps_spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/install.h"

#define GROUPS_MAX 64 /* most supplementary groups of a user */
#define PLACE "/usr/bin:/usr/local/bin:/usr/local/nvidia/bin"
#define ENVIRONMENT_MAX 8

static bool is_program(const char *path)
{
	struct stat st;
	return stat(path, &st) == 0 && S_ISREG(st.st_mode) && access(path, X_OK) == 0;
}

int mps_find_program(bool is_simulated, char ret_path[PATHS_MAX], struct error *err)
{
	char places[PATHS_MAX], path[PATHS_MAX], *save = NULL;
	const char *from = getenv("PATH");
	if (is_simulated)
		return install_find(INSTALL_SIM_MPS, ret_path, err);
	snprintf(places, sizeof(places), "%s:%s", from ? from : "", PLACE);
	for (const char *dir = strtok_r(places, ":", &save); dir; dir = strtok_r(NULL, ":", &save)) {
		if (*dir != '/' || paths_join(dir, MPS_PROGRAM, path, sizeof(path), NULL) < 0 ||
		    !is_program(path))
			continue;
		strcpy(ret_path, path);
		return 0;
	}
	return error_set(err, ENOENT,
			 "there is no " MPS_PROGRAM " on this machine: install the driver's compute "
			 "utilities (nvidia-compute-utils on Debian and Ubuntu)");
}

struct identity {
	bool changes;
	uid_t uid;
	gid_t gid;
	gid_t groups[GROUPS_MAX];
	int group_count;
};

/* Looks up the ids to run with. A user without a passwd entry gets only the group whose id equals the user's id. */
static void identify(uid_t uid, struct identity *ret)
{
	*ret = (struct identity){ .changes = uid != geteuid(), .uid = uid, .gid = (gid_t)uid };
	const struct passwd *who = ret->changes ? getpwuid(uid) : NULL;
	if (!who)
		return;
	ret->gid = who->pw_gid;
	ret->group_count = GROUPS_MAX;
	if (getgrouplist(who->pw_name, who->pw_gid, ret->groups, &ret->group_count) < 0)
		ret->group_count = 0;
}

/* In the forked child, libc's functions would synchronize with threads that do not exist there, so use system calls. */
static bool switch_user(const struct identity *who)
{
	if (!who->changes)
		return true;
	return syscall(SYS_setgroups, (size_t)who->group_count, who->groups) == 0 &&
	       syscall(SYS_setresgid, who->gid, who->gid, who->gid) == 0 &&
	       syscall(SYS_setresuid, who->uid, who->uid, who->uid) == 0;
}

struct environment {
	char text[ENVIRONMENT_MAX][PATHS_MAX + 32];
	char *list[ENVIRONMENT_MAX + 1];
	unsigned count;
};

static void add(struct environment *e, const char *name, const char *value)
{
	if (!value || !*value || e->count == ENVIRONMENT_MAX)
		return;
	snprintf(e->text[e->count], sizeof(e->text[0]), "%s=%s", name, value);
	e->list[e->count] = e->text[e->count];
	e->list[++e->count] = NULL;
}

/* Of this daemon's variables, passes on only the paths of programs and libraries. */
static void fill_environment(const struct mps_spawn *s, struct environment *e)
{
	e->count = 0;
	add(e, "PATH", getenv("PATH") ? getenv("PATH") : PLACE);
	add(e, "LD_LIBRARY_PATH", getenv("LD_LIBRARY_PATH"));
	add(e, "HOME", "/");
	add(e, "CUDA_MPS_PIPE_DIRECTORY", s->pipe_dir);
	add(e, "CUDA_MPS_LOG_DIRECTORY", s->log_dir);
	add(e, "CUDA_VISIBLE_DEVICES", s->device);
	add(e, "ALLOT_SIM_SOCKET", s->sim_socket);
}

static _Noreturn void exec_program(const struct mps_spawn *s, char *const *argv, char *const *envp,
				   const struct identity *who)
{
	sigset_t none;
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	signal(SIGPIPE, SIG_DFL);
	/* the program's files may be readable for all, because other users cannot enter their directory */
	umask(022);
	if (s->is_detached)
		setsid();
	if (dup2(s->in_fd, STDIN_FILENO) < 0 || dup2(s->out_fd, STDOUT_FILENO) < 0 ||
	    dup2(s->out_fd, STDERR_FILENO) < 0 || !switch_user(who) || chdir("/") < 0)
		_exit(127);
	execve(argv[0], argv, envp);
	_exit(127);
}

/* Starts the program as a grandchild, so that the daemon need not wait for it. Sends its pid to the daemon. */
static _Noreturn void spawn_detached(int fd, const struct mps_spawn *s, char *const *argv,
				     char *const *envp, const struct identity *who)
{
	pid_t pid = fork();
	if (pid == 0)
		exec_program(s, argv, envp, who);
	ssize_t n = write(fd, &pid, sizeof(pid));
	_exit(n == sizeof(pid) ? 0 : 1);
}

pid_t mps_spawn(const struct mps_spawn *spawn, struct error *err)
{
	char program[PATHS_MAX], argument[16] = "";
	char *argv[] = { program, spawn->argument ? argument : NULL, NULL };
	struct environment environment;
	struct identity who;
	int fds[2] = { -1, -1 };
	pid_t daemon_pid = -1;
	snprintf(program, sizeof(program), "%s", spawn->program);
	if (spawn->argument)
		snprintf(argument, sizeof(argument), "%s", spawn->argument);
	fill_environment(spawn, &environment);
	identify(spawn->uid, &who);
	if (spawn->is_detached && pipe2(fds, O_CLOEXEC) < 0)
		return error_set_errno(err, errno, MPS_PROGRAM ": pipe");
	cleanup_fd int read_fd = fds[0];
	pid_t child = fork();
	if (child == 0 && spawn->is_detached)
		spawn_detached(fds[1], spawn, argv, environment.list, &who);
	if (child == 0)
		exec_program(spawn, argv, environment.list, &who);
	int error = errno;
	close_fd(&fds[1]);
	if (child < 0)
		return error_set_errno(err, error, MPS_PROGRAM ": fork");
	if (!spawn->is_detached)
		return child;
	ssize_t n = read(read_fd, &daemon_pid, sizeof(daemon_pid));
	while (waitpid(child, NULL, 0) < 0 && errno == EINTR)
		;
	if (n != (ssize_t)sizeof(daemon_pid) || daemon_pid < 0)
		return error_set(err, EAGAIN,
				 MPS_PROGRAM
				 ": can't be started: the limit of processes may be reached");
	return daemon_pid;
}
