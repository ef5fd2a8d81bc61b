/* allot-load: the load of all share experiments. It launches kernels of known
 * cost as fast as they are taken, and reports the work done: a share computed
 * from work can't be wrong the way a utilization counter can.
 *
 * By hand, here: cc -std=c11 -D_GNU_SOURCE -O2 -I../../src -o allot-load *.c -ldl -lm -pthread
 */
#include "report.h"
#include "run.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static void on_signal(int number)
{
	(void)number;
	run_interrupted = 1;
}

static void try_too_much(const struct driver *d, struct refusal *ret, bool json)
{
	size_t free_bytes, total_bytes;
	CUdeviceptr p;
	DRIVER_DO(d, mem_info, &free_bytes, &total_bytes);
	driver_need(d, offsetof(struct driver, mem_alloc));
	size_t asked_bytes = total_bytes + ((size_t)64 << 20);
	CUresult r = d->mem_alloc(&p, asked_bytes);
	if (r == CUDA_SUCCESS)
		DRIVER_DO(d, mem_free, p);
	*ret = (struct refusal){ .tried = true, .asked_bytes = asked_bytes, .result = r };
	if (!json || r == CUDA_SUCCESS)
		fprintf(stderr, "allot-load: cuMemAlloc of %zu bytes, total %zu: %s\n", asked_bytes,
			total_bytes,
			r == CUDA_SUCCESS ? "granted, not refused" : driver_error_name(d, r));
}

static int work(const struct options *options, int id)
{
	static struct run run; /* large: not on the stack */
	struct driver driver;
	struct kernel kernel;
	struct refusal refusal = { 0 };
	CUdeviceptr held = 0;

	if (options->trace != NULL)
		trace_read(&run.trace, options->trace, (unsigned)options->trace_row);
	driver_open(&driver);
	kernel_load(&kernel, &driver, (unsigned)options->kernel_us, (unsigned)options->blocks,
		    (uint32_t)options->iters);
	kernel.cooperative = options->cooperative;
	if (options->calibrate_only) {
		report_calibration(&kernel, options);
		driver_close(&driver);
		return 0;
	}
	if (options->mib > 0)
		DRIVER_DO(&driver, mem_alloc, &held, (size_t)options->mib << 20);
	if (options->alloc_over)
		try_too_much(&driver, &refusal, options->json);

	run.options = options;
	run.kernel = &kernel;
	lanes_open(&run.lanes, &driver, &kernel, (unsigned)options->streams, options->graph,
		   options->prepare_us > 0 ? PREPARED_AHEAD_S : LANES_AHEAD_S);
	run_wait_until(options->start_at_s);
	uint64_t end_ns = run_drive(&run, id);
	report_end(&run, end_ns, &refusal, &driver);
	fflush(stdout); /* the line must be out even if a shared GPU never lets this end */

	lanes_close(&run.lanes);
	if (held != 0)
		DRIVER_DO(&driver, mem_free, held);
	driver_close(&driver);
	return ferror(stdout) ? 1 : 0;
}

/* One child each, before any of them knows the driver: CUDA does not survive a fork. */
static int work_in_children(const struct options *options)
{
	int failed = 0, status;
	pid_t children[64], pid;
	unsigned count = (unsigned)options->processes;
	for (unsigned i = 0; i < count; i++) {
		children[i] = fork();
		if (children[i] < 0) {
			perror("allot-load: fork");
			exit(1);
		}
		if (children[i] == 0)
			exit(work(options, (int)i));
	}
	while ((pid = wait(&status)) > 0 || errno == EINTR) {
		if (pid > 0 && !(WIFEXITED(status) && WEXITSTATUS(status) == 0))
			failed = 1;
		else if (pid < 0 && run_interrupted)
			for (unsigned i = 0; i < count; i++)
				kill(children[i], SIGTERM);
	}
	return failed;
}

int main(int argc, char **argv)
{
	struct options options;
	options_parse(&options, argc, argv);
	struct sigaction act = { .sa_handler = on_signal };
	sigaction(SIGINT, &act, NULL);
	sigaction(SIGTERM, &act, NULL);
	return options.processes > 1 ? work_in_children(&options) : work(&options, -1);
}
