/*
 * shape NAME [ARGUMENT...]: a process of some unusual shape that uses a GPU; prints what it found, a
 * line each, and ends with 0 when all went as it should. Linked with the driver.
 */
#define _GNU_SOURCE
#define LINKED
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "use.h"

extern char **environ;

static struct use_driver d;

/* How a child ended, or -1 when it had to be killed after 10 s. */
static int wait_for(pid_t pid)
{
	int status = 0;

	for (int i = 0; i < 10000; i++) {
		if (waitpid(pid, &status, WNOHANG) == pid)
			return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
		usleep(1000);
	}
	kill(pid, SIGKILL);
	waitpid(pid, &status, 0);
	return -1;
}

/* Quiet: the whole of use_gpu() for a child, whose result is its status. */
static int use_quietly(void)
{
	cu_pointer small = 0, large = 0;

	if (d.cuInit(0) || use_context(&d, 0) || d.cuMemAlloc_v2(&small, FITS))
		return 1;
	if (d.cuMemAlloc_v2(&large, TOO_MUCH) != 2)
		return 2;
	return d.cuMemFree_v2(small) || d.cuDevicePrimaryCtxRelease_v2(0) ? 3 : 0;
}

static int report(const char *what, int result, int expected)
{
	printf("%s %d\n", what, result);
	return result != expected;
}

/* A parent with a context and 1 GiB; `finish` frees it, and sees that it was there all the time. */
static cu_pointer held;

static int start(void)
{
	return report("start", d.cuInit(0) || use_context(&d, 0) || d.cuMemAlloc_v2(&held, FITS), 0);
}

static int finish(void)
{
	cu_pointer more = 0;
	/* 1 GiB and the context are held: 3 GiB more are too much for 4. */
	int wrong = report("full", d.cuMemAlloc_v2(&more, 3 * FITS), 2);

	wrong |= report("fits", d.cuMemAlloc_v2(&more, FITS), 0);
	return wrong | report("finish",
			      d.cuMemFree_v2(more) || d.cuMemFree_v2(held) ||
				      d.cuDevicePrimaryCtxRelease_v2(0),
			      0);
}

static int fork_before(char **argv)
{
	int wrong = 0;

	for (int i = 0; i < 3; i++) {
		pid_t pid = fork();
		if (pid == 0)
			_exit(use_quietly());
		wrong |= report("child", wait_for(pid), 0);
	}
	return wrong | start() | finish();
}

/* As a DataLoader's worker: CUDA in the child is the driver's error, and the parent's is its own. */
static int fork_after(char **argv)
{
	int wrong = start();
	pid_t pid = fork();

	if (pid == 0) {
		cu_pointer more = 0;
		/* Whatever the driver says, it is to say something. */
		d.cuMemAlloc_v2(&more, FITS);
		d.cuMemFree_v2(held);
		d.cuInit(0);
		d.cuMemAlloc_v2(&more, TOO_MUCH);
		exit(0);
	}
	wrong |= report("child", wait_for(pid), 0);
	pid = fork();
	if (pid == 0)
		_exit(0); /* and one that does nothing */
	return wrong | report("idle child", wait_for(pid), 0) | finish();
}

static int run_self(const char *shape, int (*spawn)(char **argv, pid_t *ret))
{
	char *argv[] = { "/proc/self/exe", (char *)(size_t)shape, NULL };
	pid_t pid = 0;

	return spawn(argv, &pid) ? -1 : wait_for(pid);
}

static int by_fork(char **argv, pid_t *ret)
{
	*ret = fork();
	if (*ret == 0) {
		execv(argv[0], argv);
		_exit(127);
	}
	return 0;
}

static int by_vfork(char **argv, pid_t *ret)
{
	*ret = vfork();
	if (*ret == 0) {
		execv(argv[0], argv);
		_exit(127);
	}
	return 0;
}

static int by_spawn(char **argv, pid_t *ret)
{
	return posix_spawn(ret, argv[0], NULL, NULL, argv, environ);
}

static int fork_exec(char **argv)
{
	return start() | report("child", run_self("quiet", by_fork), 0) | finish();
}

static int vfork_exec(char **argv)
{
	return start() | report("child", run_self("quiet", by_vfork), 0) | finish();
}

static int spawned(char **argv)
{
	return start() | report("child", run_self("quiet", by_spawn), 0) | finish();
}

/* The same process, another program: the old image's memory is not the new one's. */
static int exec_itself(char **argv)
{
	char *next[] = { "/proc/self/exe", "quiet", NULL };

	if (start())
		return 1;
	execv(next[0], next);
	return 1;
}

static int quiet(char **argv)
{
	return use_quietly();
}

static void *in_a_thread(void *unused)
{
	long failures = 0;

	for (int i = 0; i < 20; i++) {
		cu_pointer p = 0;
		if (use_context(&d, 0)) {
			failures++;
			continue;
		}
		cu_result r = d.cuMemAlloc_v2(&p, FITS);
		failures += r != 0 && r != 2;
		if (!r)
			failures += d.cuMemFree_v2(p) != 0;
		failures += d.cuDevicePrimaryCtxRelease_v2(0) != 0;
	}
	return (void *)failures;
}

static int threads(char **argv)
{
	pthread_t thread[8];
	long failures = 0;
	int wrong = start();

	for (int i = 0; i < 8; i++)
		pthread_create(&thread[i], NULL, in_a_thread, NULL);
	for (int i = 0; i < 8; i++) {
		void *failed;
		pthread_join(thread[i], &failed);
		failures += (long)failed;
	}
	return wrong | report("failures", (int)failures, 0) | finish();
}

/* Each device has a quota of its own. */
static int devices(char **argv)
{
	int wrong = 0, count = atoi(argv[0]);
	cu_pointer p[16], large;

	if (d.cuInit(0))
		return 1;
	for (int i = 0; i < count; i++) {
		wrong |= report("context", use_context(&d, i), 0);
		wrong |= report("fits", d.cuMemAlloc_v2(&p[i], FITS), 0);
		wrong |= report("too much", d.cuMemAlloc_v2(&large, TOO_MUCH), 2);
	}
	for (int i = 0; i < count; i++)
		wrong |= use_context(&d, i) || d.cuMemFree_v2(p[i]) ||
			 d.cuDevicePrimaryCtxRelease_v2(i) || d.cuDevicePrimaryCtxRelease_v2(i);
	return wrong;
}

static double seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

#define GROUP 100

static double median_us(double took[GROUP])
{
	qsort(took, GROUP, sizeof(*took), compare);
	return took[GROUP / 2] * 1e6;
}

/* N processes one after another; the median microseconds of the first and the last hundred. */
static int many(char **argv)
{
	int count = atoi(argv[0]), failures = 0;
	double first[GROUP], last[GROUP];

	for (int i = 0; i < count; i++) {
		double begin = seconds();
		failures += run_self("quiet", by_spawn) != 0;
		double took = seconds() - begin;
		if (i < GROUP)
			first[i] = took;
		if (i >= count - GROUP)
			last[i - (count - GROUP)] = took;
	}
	printf("first %.0f\nlast %.0f\n", median_us(first), median_us(last));
	return report("failures", failures, 0);
}

/* ---- what a program does to itself ---- */

static int close_all(char **argv)
{
	int wrong = start();

	fflush(stdout);
	for (int fd = 3; fd < 1024; fd++)
		close(fd);
	/* The card is gone, as a real one would be; none of it may hang or crash. */
	cu_pointer p = 0;
	d.cuMemAlloc_v2(&p, TOO_MUCH);
	d.cuMemFree_v2(held);
	return wrong;
}

/* Descriptors of the program's own at the numbers that a library might think its own. */
static int descriptors(char **argv)
{
	int wrong = 0, before = open("/dev/null", O_RDONLY), after;

	wrong |= start();
	DIR *dir = opendir("/proc/self/fd");
	int sockets = 0;
	for (struct dirent *e; dir && (e = readdir(dir));) {
		char path[300], target[300];
		snprintf(path, sizeof(path), "/proc/self/fd/%s", e->d_name);
		ssize_t n = readlink(path, target, sizeof(target) - 1);
		target[n > 0 ? n : 0] = '\0';
		sockets += strstr(target, "memfd:") != NULL;
	}
	closedir(dir);
	wrong |= report("memory files", sockets, 0);
	close(before);
	after = open("/dev/null", O_RDONLY);
	wrong |= report("same number", after == before, 1);
	return wrong | finish();
}

static int change_root(char **argv)
{
	int wrong = start();

	if (chroot(argv[0]) || chdir("/"))
		return 77;
	return wrong | finish();
}

static int daemonize(char **argv)
{
	int answer[2], status = -1;

	if (pipe(answer))
		return 1;
	pid_t pid = fork();
	if (pid == 0) {
		setsid();
		if (fork() == 0) {
			status = use_quietly();
			if (write(answer[1], &status, sizeof(status)) < 0)
				_exit(1);
			_exit(0);
		}
		_exit(0);
	}
	close(answer[1]);
	int wrong = report("parent", wait_for(pid), 0);
	if (read(answer[0], &status, sizeof(status)) != sizeof(status))
		return 1;
	return wrong | report("daemon", status, 0);
}

static void prepare_fork(void)
{
	cu_pointer p = 0;

	if (!d.cuMemAlloc_v2(&p, 4096))
		d.cuMemFree_v2(p);
}

/* Handlers of a fork that call CUDA: in the parent it works, in the child it is an error. */
static int at_fork(char **argv)
{
	int wrong = start();

	pthread_atfork(prepare_fork, prepare_fork, prepare_fork);
	for (int i = 0; i < 10; i++) {
		pid_t pid = fork();
		if (pid == 0)
			_exit(0);
		wrong |= wait_for(pid) != 0;
	}
	return wrong | finish();
}

/* ---- signals ---- */

static volatile sig_atomic_t usr1, usr2;

static void count_signal(int number)
{
	if (number == SIGUSR1)
		usr1++;
	else
		usr2++;
}

static int signals(char **argv)
{
	struct sigaction action = { .sa_handler = count_signal }, now;
	sigset_t mask, later;
	int wrong = 0;

	sigaction(SIGUSR1, &action, NULL);
	sigaction(SIGUSR2, &action, NULL);
	sigprocmask(SIG_SETMASK, NULL, &mask);
	wrong |= start();
	for (int i = 0; i < 200; i++) {
		cu_pointer p = 0;
		kill(getpid(), i % 2 ? SIGUSR1 : SIGUSR2);
		if (!d.cuMemAlloc_v2(&p, 1 << 20))
			d.cuMemFree_v2(p);
	}
	wrong |= report("usr1", usr1, 100) | report("usr2", usr2, 100);
	sigaction(SIGUSR1, NULL, &now);
	wrong |= report("handler kept", now.sa_handler == count_signal, 1);
	sigprocmask(SIG_SETMASK, NULL, &later);
	wrong |= report("mask kept", memcmp(&mask, &later, sizeof(long)) == 0, 1);
	return wrong | finish();
}

static const struct {
	const char *name;
	int (*run)(char **argv);
} shapes[] = {
	{ "quiet", quiet },         { "fork-before", fork_before }, { "fork-after", fork_after },
	{ "fork-exec", fork_exec }, { "vfork-exec", vfork_exec },   { "posix-spawn", spawned },
	{ "exec", exec_itself },    { "threads", threads },         { "devices", devices },
	{ "many", many },           { "close-all", close_all },     { "descriptors", descriptors },
	{ "chroot", change_root },  { "daemonize", daemonize },     { "at-fork", at_fork },
	{ "signals", signals },
};

int main(int argc, char **argv)
{
	setvbuf(stdout, NULL, _IONBF, 0);
	if (use_find(use_linked, &d))
		return 1;
	for (size_t i = 0; argc > 1 && i < sizeof(shapes) / sizeof(shapes[0]); i++)
		if (strcmp(argv[1], shapes[i].name) == 0)
			return shapes[i].run(argv + 2);
	return 2;
}
