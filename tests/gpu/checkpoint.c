/*
 * gpu-checkpoint MIB: holds so much device memory with contents of its own, a stream, an event and a graph,
 * while it is taken off its GPU and brought back from outside (tests/gpu/checks/checkpoint.py).
 *
 * Prints "pid N", then "held BYTES" when it is all there. For each line of input it prints "ok contents" when
 * every byte is as it was and the graph does what it did, or "not ok contents: why"; ends with the input.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cuda.h"

#define MIB ((size_t)1 << 20)
#define PIECE (16 * MIB)
#define SMALL ((size_t)4096)
#define BUFFERS 4

static struct buffer {
	CUdeviceptr at;
	size_t bytes;
} buffers[BUFFERS + 1];

static unsigned char *host, *expected; /* a piece each */
static CUstream stream;
static CUevent event;
static CUgraphExec graph;
static CUdeviceptr target; /* of the graph */

/* The bytes of a piece: from its number alone. */
static void fill(unsigned char *to, size_t bytes, uint64_t seed)
{
	uint64_t x = seed * 0x9e3779b97f4a7c15ULL + 1;

	for (size_t i = 0; i < bytes; i += sizeof(x)) {
		x ^= x << 13;
		x ^= x >> 7;
		x ^= x << 17;
		memcpy(to + i, &x, sizeof(x));
	}
}

static void make_buffers(size_t bytes)
{
	for (size_t b = 0; b <= BUFFERS; b++) {
		buffers[b].bytes = b == BUFFERS ? SMALL : bytes / BUFFERS;
		GPU_DO(mem_alloc, &buffers[b].at, buffers[b].bytes);
		for (size_t at = 0; at < buffers[b].bytes; at += PIECE) {
			size_t n = buffers[b].bytes - at < PIECE ? buffers[b].bytes - at : PIECE;
			fill(host, n, b << 32 | at);
			GPU_DO(mem_to_card, buffers[b].at + at, host, n);
		}
	}
}

static void make_graph(void)
{
	CUgraph made;

	GPU_DO(mem_alloc, &target, SMALL);
	GPU_DO(stream_create, &stream, CU_STREAM_NON_BLOCKING);
	GPU_DO(event_create, &event, CU_EVENT_DISABLE_TIMING);
	GPU_DO(capture_begin, stream, CU_STREAM_CAPTURE_MODE_GLOBAL);
	GPU_DO(mem_set_async, target, 7, SMALL, stream);
	GPU_DO(capture_end, stream, &made);
	GPU_DO(graph_instantiate, &graph, made, 0);
	GPU_DO(graph_destroy, made);
}

/* NULL: as it was; else where not. */
static const char *compare(void)
{
	static char why[96];

	for (size_t b = 0; b <= BUFFERS; b++)
		for (size_t at = 0; at < buffers[b].bytes; at += PIECE) {
			size_t n = buffers[b].bytes - at < PIECE ? buffers[b].bytes - at : PIECE;
			fill(expected, n, b << 32 | at);
			GPU_DO(mem_to_host, host, buffers[b].at + at, n);
			if (memcmp(host, expected, n) == 0)
				continue;
			snprintf(why, sizeof(why), "buffer %zu differs within %zu bytes at %zu", b,
				 n, at);
			return why;
		}
	return NULL;
}

static const char *run_graph(void)
{
	GPU_DO(mem_set, target, 0, SMALL);
	GPU_DO(graph_launch, graph, stream);
	GPU_DO(event_record, event, stream);
	gpu_burn(stream, 1000);
	GPU_DO(stream_sync, stream);
	if (gpu.is_simulated) /* its graphs take time and set nothing */
		return NULL;
	GPU_DO(mem_to_host, host, target, SMALL);
	for (size_t i = 0; i < SMALL; i++)
		if (host[i] != 7)
			return "the graph did not do what it did before";
	return NULL;
}

int main(int argc, char **argv)
{
	char line[16];
	size_t mib = argc == 2 ? strtoul(argv[1], NULL, 10) : 0;

	if (mib < BUFFERS || mib % BUFFERS) {
		fprintf(stderr, "usage: gpu-checkpoint MIB, a multiple of %d\n", BUFFERS);
		return 2;
	}
	printf("pid %d\n", (int)getpid());
	fflush(stdout);
	gpu_open(1);
	host = malloc(PIECE);
	expected = malloc(PIECE);
	if (!host || !expected)
		return 1;
	make_buffers(mib * MIB);
	make_graph();
	GPU_DO(ctx_sync);
	printf("held %zu\n", mib * MIB);
	fflush(stdout);
	while (fgets(line, sizeof(line), stdin)) {
		const char *why = compare();
		if (!why)
			why = run_graph();
		if (why)
			printf("not ok contents: %s\n", why);
		else
			printf("ok contents\n");
		fflush(stdout);
	}
	return 0;
}
