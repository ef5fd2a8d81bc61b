/*
 * gpu-progress CASE [OPTION...]: runs one forward-progress case, says how long its repetitions took,
 * and ends with status 0; 1 when a call or a check failed, 3 when it hung. See progress.h.
 */
#include "progress.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define STATUS_HUNG 3

const struct progress_case progress_cases[] = {
	{ "waitvalue", 100, { progress_waitvalue } },
	{ "hostfunc", 100, { progress_hostfunc } },
	{ "ipc", 100, { progress_ipc_first, progress_ipc_second } },
	{ "spin", 100, { progress_spin, progress_spin } },
	{ "persistent", 100, { progress_persistent } },
	{ "sigstop", 100, { progress_stopped, progress_stopper } },
	{ "capture", 200, { progress_capture } },
	{ NULL },
};

static int compare_doubles(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* Sorts them. */
static void print_series(const char *label, double *values, unsigned int count)
{
	qsort(values, count, sizeof(values[0]), compare_doubles);
	printf(", %s min %.2f median %.2f max %.2f", label, values[0], values[count / 2],
	       values[count - 1]);
}

static void print_outcome(struct progress *p)
{
	unsigned int count = p->done;

	printf("%s: %u reps", p->name, count);
	if (count > 0) {
		print_series("ms", p->rep_ms, count);
		if (p->extra_label)
			print_series(p->extra_label, p->extra, count);
	}
	printf(", ok\n");
	fflush(stdout);
}

/* Nothing that was stopped may stay so, however this program ends. */
static void let_go(struct progress *p)
{
	if (!p->share)
		return;
	p->share->is_over = 1;
	if (p->share->pid[!p->role] > 0)
		kill(p->share->pid[!p->role], SIGCONT);
}

void progress_fail(struct progress *p, const char *format, ...)
{
	va_list arguments;

	printf("%s: repetition %u: ", p->name, p->done + 1);
	va_start(arguments, format);
	vprintf(format, arguments);
	va_end(arguments);
	printf("\n");
	fflush(stdout);
	let_go(p);
	_exit(1);
}

void progress_sign(struct progress *p)
{
	p->last_ns = now_ns();
}

void progress_rep(struct progress *p, uint64_t begin_ns, double extra)
{
	unsigned int i = p->done;

	p->rep_ms[i] = (double)(now_ns() - begin_ns) / (double)NSEC_PER_MSEC;
	p->extra[i] = extra;
	p->done = i + 1;
	progress_sign(p);
}

static void *watch(void *arg)
{
	struct progress *p = arg;

	for (;;) {
		nap_ns(100 * NSEC_PER_MSEC);
		uint64_t last_ns =
			p->last_ns; /* first: it may be later than a time that was read before */
		if (now_ns() - last_ns < p->timeout_ns)
			continue;
		printf("%s: HUNG: repetition %u of %u did not end within %.0f s\n", p->name,
		       p->done + 1, p->reps, (double)p->timeout_ns / (double)NSEC_PER_SEC);
		fflush(stdout);
		let_go(p);
		_exit(STATUS_HUNG);
	}
	return NULL;
}

static struct share *map_share(const char *path)
{
	int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	struct share *share = MAP_FAILED;

	if (fd >= 0 && ftruncate(fd, sizeof(*share)) == 0)
		share = mmap(NULL, sizeof(*share), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (share == MAP_FAILED) {
		fprintf(stderr, "gpu-progress: %s: %s\n", path, strerror(errno));
		exit(1);
	}
	close(fd);
	return share;
}

static void print_help(void)
{
	puts("usage: gpu-progress CASE [OPTION...]\n\n"
	     "  --role N       0 or 1, of a case with two\n"
	     "  --share FILE   of a case with two roles: a file on a tmpfs, new for each run\n"
	     "  --reps N       repetitions (100; capture: 200)\n"
	     "  --iters N      turns of the kernel's loop for 1 ms, from allot-load's calibration\n"
	     "  --kernel-us N  length of the kernels that queue up (500)\n"
	     "  --timeout S    hung when a repetition takes longer (20)\n\ncases:");
	for (const struct progress_case *c = progress_cases; c->name; c++)
		printf("  %s%s\n", c->name, c->run[1] ? " (two roles)" : "");
}

static const char *option(int argc, char **argv, const char *name, const char *preset)
{
	for (int i = 2; i + 1 < argc; i += 2)
		if (strcmp(argv[i], name) == 0)
			return argv[i + 1];
	return preset;
}

static const struct progress_case *find_case(const char *name)
{
	for (const struct progress_case *c = progress_cases; c->name; c++)
		if (strcmp(c->name, name) == 0)
			return c;
	return NULL;
}

int main(int argc, char **argv)
{
	static struct progress p;
	const struct progress_case *wanted = argc > 1 ? find_case(argv[1]) : NULL;
	const char *share_path;
	pthread_t watcher;

	if (!wanted || argc % 2 != 0) {
		print_help();
		return 2;
	}
	p.name = wanted->name;
	p.role = atoi(option(argc, argv, "--role", "0")) != 0;
	p.reps = (unsigned int)atoi(option(argc, argv, "--reps", "0"));
	if (p.reps == 0)
		p.reps = wanted->default_reps;
	if (p.reps > REPS_MAX)
		p.reps = REPS_MAX;
	p.kernel_us = strtoull(option(argc, argv, "--kernel-us", "500"), NULL, 10);
	p.timeout_ns = (uint64_t)(atof(option(argc, argv, "--timeout", "20")) * 1e9);
	share_path = option(argc, argv, "--share", NULL);
	if (wanted->run[1] && !share_path) {
		fprintf(stderr, "gpu-progress: %s: two roles need --share\n", p.name);
		return 2;
	}
	if (share_path) {
		p.share = map_share(share_path);
		p.share->pid[p.role] = getpid();
	}

	progress_sign(&p);
	if (pthread_create(&watcher, NULL, watch, &p) != 0)
		return 1;
	gpu_open((uint32_t)strtoul(option(argc, argv, "--iters", "0"), NULL, 10));
	GPU_DO(stream_create, &p.stream, CU_STREAM_NON_BLOCKING);
	GPU_DO(stream_create, &p.second, CU_STREAM_NON_BLOCKING);
	progress_sign(&p);
	wanted->run[p.role && wanted->run[1]](&p);
	GPU_DO(ctx_sync);
	print_outcome(&p);
	GPU_DO(ctx_set, NULL);
	GPU_DO(primary_release, gpu.dev);
	return 0;
}
