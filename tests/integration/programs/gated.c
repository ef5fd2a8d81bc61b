/*
 * gated WAY [SECONDS]: a program whose work comes to wait in its stream for its tenant's lease (library/launch/stream_gate.h).
 *
 *     ahead SECONDS   steps of ten kernels of 200 us, of which it waits for the last but one, for so long or until SIGTERM.
 *                     Prints how many launches there were, how many took longer than 1 ms, and what the stream has written
 *     exit _exit kill stop reset destroy stream fork exec free capture wait small
 *                     launches until its work waits, and then does what the word says, and what should still work after
 *
 * Linked with the driver.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "training.h"

#define KERNELS 10
#define NOT_READY 600
#define ALREADY_REGISTERED 712 /* as the simulated driver says after the context's end */
#define WAIT_GEQ 0
#define PAGE 4096

typedef struct cu_event *cu_event;
typedef struct cu_graph *cu_graph;
typedef struct cu_graph_exec *cu_graph_exec;

cu_result cuMemHostRegister_v2(void *at, size_t bytes, unsigned flags);
cu_result cuMemHostGetDevicePointer_v2(cu_pointer *ret, void *at, unsigned flags);
cu_result cuStreamWaitValue32_v2(cu_stream stream, cu_pointer at, uint32_t value, unsigned flags);
cu_result cuStreamDestroy_v2(cu_stream stream);
cu_result cuStreamQuery(cu_stream stream);
cu_result cuEventCreate(cu_event *ret, unsigned flags);
cu_result cuEventRecord(cu_event event, cu_stream stream);
cu_result cuEventSynchronize(cu_event event);
cu_result cuDevicePrimaryCtxReset_v2(int device);
cu_result cuCtxCreate_v2(cu_context *ret, unsigned flags, int device);
cu_result cuCtxDestroy_v2(cu_context context);
cu_result cuMemAlloc_v2(cu_pointer *ret, size_t bytes);
cu_result cuMemFree_v2(cu_pointer pointer);
cu_result cuMemcpyDtoH_v2(void *to, cu_pointer from, size_t bytes);
cu_result cuMemcpyHtoDAsync_v2(cu_pointer to, const void *from, size_t bytes, cu_stream stream);
cu_result cuStreamBeginCapture_v2(cu_stream stream, int mode);
cu_result cuStreamEndCapture(cu_stream stream, cu_graph *ret);
cu_result cuGraphInstantiateWithFlags(cu_graph_exec *ret, cu_graph graph, unsigned long long flags);
cu_result cuGraphLaunch(cu_graph_exec exec, cu_stream stream);

static _Alignas(PAGE) volatile uint32_t words[PAGE / 4];
static cu_context context;
static cu_function kernel;
static cu_stream stream, other;
static cu_pointer at;
static uint32_t written; /* the last number that the stream was told to write */

static void begin(int makes_context)
{
	cu_module module;

	check(cuInit(0), "init");
	if (makes_context) {
		check(cuCtxCreate_v2(&context, 0, 0), "context");
	} else {
		check(cuDevicePrimaryCtxRetain(&context, 0), "context");
		check(cuCtxSetCurrent(context), "current");
	}
	check(cuModuleLoadData(&module, NO_CODE), "module");
	check(cuModuleGetFunction(&kernel, module, "allot_sim_200us_132b"), "kernel");
	check(cuStreamCreate(&stream, 1), "stream");
	check(cuStreamCreate(&other, 1), "stream");
	cu_result result = cuMemHostRegister_v2((void *)words, sizeof(words), 0);
	check(result == ALREADY_REGISTERED ? 0 : result, "register");
	check(cuMemHostGetDevicePointer_v2(&at, (void *)words, 0), "device pointer");
}

static void launch(cu_stream s)
{
	check(cuLaunchKernel(kernel, 132, 1, 1, 256, 1, 1, 0, s, NULL, NULL), "launch");
}

/* The stream writes the next number once that is done. */
static void launch_and_write(void)
{
	launch(stream);
	check(cuStreamWriteValue32_v2(stream, at, ++written, 0), "write");
}

static void finish(void)
{
	check(cuStreamSynchronize(stream), "synchronize");
	if (words[0] == written)
		return;
	fprintf(stderr, "the stream has written %u, and not %u\n", words[0], written);
	exit(1);
}

/* How long the kernel takes is known after that. */
static void learn(void)
{
	for (int i = 0; i < 100; i++) {
		launch_and_write();
		launch(other);
		finish();
	}
}

/* Three kernels of 0.2 ms that are not done after 4 ms: they wait for a lease, and are in the stream. */
static void launch_until_it_waits(void)
{
	for (;;) {
		for (int i = 0; i < 3; i++)
			launch_and_write();
		usleep(4000);
		if (cuStreamQuery(stream) == NOT_READY)
			return;
		usleep((useconds_t)(rand() % 5000));
	}
}

static void *free_memory(void *memory)
{
	check(cuCtxSetCurrent(context), "current");
	check(cuMemFree_v2(*(cu_pointer *)memory), "free");
	return NULL;
}

static void end_context(int is_reset)
{
	check(is_reset ? cuDevicePrimaryCtxReset_v2(0) : cuCtxDestroy_v2(context),
	      "end of the context");
	memset((void *)words, 0, sizeof(words));
	written = 0;
	begin(!is_reset);
	learn();
	launch_until_it_waits();
	finish();
}

static void in_a_child(char **again)
{
	pid_t child = fork();
	int status;

	if (!child) {
		if (again)
			execv(again[0], again);
		usleep(20000);
		_exit(0);
	}
	/* As the child has a copy of every page, what this process writes could be in another one from now on. */
	launch_until_it_waits();
	finish();
	check(waitpid(child, &status, 0) == child && !status ? 0 : 1, "child");
}

static void free_beside_launches(void)
{
	cu_pointer memory;
	pthread_t thread;

	check(cuMemAlloc_v2(&memory, 1 << 20), "alloc");
	launch_until_it_waits();
	check(pthread_create(&thread, NULL, free_memory, &memory) ? 1 : 0, "thread");
	for (int i = 0; i < 100; i++)
		launch(i % 2 ? stream : other);
	pthread_join(thread, NULL);
	finish();
}

static void capture(void)
{
	cu_graph graph;
	cu_graph_exec exec;

	check(cuStreamBeginCapture_v2(other, 0), "begin of a capture");
	launch(other);
	launch(other);
	check(cuStreamEndCapture(other, &graph), "end of a capture");
	check(cuGraphInstantiateWithFlags(&exec, graph, 0), "instantiate");
	for (int i = 0; i < 30; i++)
		check(cuGraphLaunch(exec, stream), "graph");
	finish();
}

static void wait_for_value(void)
{
	cu_pointer word = at + 128;

	check(cuStreamWaitValue32_v2(stream, word, 1, WAIT_GEQ), "wait");
	launch_and_write();
	usleep(10000);
	words[32] = 1;
	finish();
}

static void small_copies(void)
{
	cu_pointer memory;
	uint32_t value = 0;

	check(cuMemAlloc_v2(&memory, 4096), "alloc");
	for (uint32_t i = 1; i < 200; i++) {
		launch(stream);
		check(cuMemcpyHtoDAsync_v2(memory, &i, 4, stream), "copy");
		launch(stream);
		check(cuStreamSynchronize(stream), "synchronize");
		check(cuMemcpyDtoH_v2(&value, memory, 4), "copy back");
		if (value != i) {
			fprintf(stderr, "%u in place of %u\n", value, i);
			exit(1);
		}
	}
}

static volatile sig_atomic_t is_to_end;

static void note_end(int signal)
{
	is_to_end = signal;
}

static void go_ahead(double seconds)
{
	double end = now_s() + seconds;
	unsigned launches = 0, held = 0;
	uint32_t last = 0, number = 0, told[2] = { 0 };
	cu_event done[2];

	signal(SIGTERM, note_end);
	for (int i = 0; i < 2; i++)
		check(cuEventCreate(&done[i], 2), "event");
	while (now_s() < end && !is_to_end) {
		for (int i = 0; i < KERNELS; i++) {
			double before = now_s();

			launch_and_write();
			held += now_s() - before > 0.001;
			launches++;
			if (words[0] < last || words[0] > written)
				check(1, "order of what the stream writes");
			last = words[0];
		}
		check(cuEventRecord(done[number % 2], stream), "record");
		told[number % 2] = written;
		if (number++) {
			check(cuEventSynchronize(done[number % 2]), "synchronize");
			check(words[0] >= told[number % 2] ? 0 : 1, "what the stream has written");
		}
	}
	finish();
	printf("{\"launches\": %u, \"held\": %u, \"written\": %u}\n", launches, held, words[0]);
}

int main(int count, char **arguments)
{
	const char *way = count > 1 ? arguments[1] : "";
	char *again[] = { arguments[0], "plain", NULL };

	srand((unsigned)getpid());
	begin(!strcmp(way, "destroy"));
	if (!strcmp(way, "plain")) {
		launch(stream);
		check(cuStreamSynchronize(stream), "synchronize");
		return 0;
	}
	learn();
	if (!strcmp(way, "ahead")) {
		go_ahead(count > 2 ? strtod(arguments[2], NULL) : 1);
		return 0;
	}
	launch_until_it_waits();
	if (!strcmp(way, "exit"))
		exit(0);
	if (!strcmp(way, "_exit"))
		_exit(0);
	if (!strcmp(way, "kill"))
		raise(SIGKILL);
	if (!strcmp(way, "reset") || !strcmp(way, "destroy"))
		end_context(!strcmp(way, "reset"));
	if (!strcmp(way, "stream")) {
		check(cuStreamDestroy_v2(stream), "destroy");
		check(cuStreamCreate(&stream, 1), "stream");
		while (words[0] != written)
			usleep(1000);
		launch_until_it_waits();
		finish();
	}
	if (!strcmp(way, "fork"))
		in_a_child(NULL);
	if (!strcmp(way, "exec"))
		in_a_child(again);
	if (!strcmp(way, "free"))
		free_beside_launches();
	if (!strcmp(way, "capture"))
		capture();
	if (!strcmp(way, "wait"))
		wait_for_value();
	if (!strcmp(way, "small"))
		small_copies();
	finish();
	return 0;
}
