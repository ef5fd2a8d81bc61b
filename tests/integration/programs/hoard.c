/*
 * Takes device memory step by step, as a program does that loads what it needs: a context, then chunks,
 * then holds them. Prints a line before and after each stage; ends with 1 when memory is refused.
 *
 *     hoard MIB CHUNK_MIB GAP_MS HOLD_MS [CONTEXT_MS]
 */
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

int cuInit(unsigned);
int cuDevicePrimaryCtxRetain(void **, int);
int cuCtxSetCurrent(void *);
int cuMemAlloc_v2(uint64_t *, size_t);

static void rest(long ms)
{
	struct timespec ts = { ms / 1000, ms % 1000 * 1000000 };
	nanosleep(&ts, NULL);
}

static void say(const char *what)
{
	struct timespec ts;
	clock_gettime(CLOCK_MONOTONIC, &ts);
	printf("%s %.6f\n", what, (double)ts.tv_sec + (double)ts.tv_nsec / 1e9);
	fflush(stdout);
}

int main(int argc, char **argv)
{
	long mib, chunk, gap_ms, hold_ms;
	void *context;
	uint64_t at;

	if (argc < 5)
		return 2;
	mib = atol(argv[1]);
	chunk = atol(argv[2]);
	gap_ms = atol(argv[3]);
	hold_ms = atol(argv[4]);
	say("begin");
	if (cuInit(0))
		return 3;
	say("init");
	if (argc > 5)
		rest(atol(argv[5]));
	if (cuDevicePrimaryCtxRetain(&context, 0) || cuCtxSetCurrent(context)) {
		say("no context");
		return 1;
	}
	say("context");
	for (long have = 0; have < mib; have += chunk) {
		if (cuMemAlloc_v2(&at, (size_t)(chunk < mib - have ? chunk : mib - have) << 20)) {
			say("refused");
			return 1;
		}
		rest(gap_ms);
	}
	say("full");
	rest(hold_ms);
	say("end");
	return 0;
}
