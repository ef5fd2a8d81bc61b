/*
 * How fast bytes go from one card to another: for each pair of devices that is named, copies of one block over
 * and over, in streams of the card that they leave.
 *
 *     peer-copy [--mib N] [--seconds S] [--together] A-B [A-B...]
 *
 * Devices are CUDA's. One after the other, or with --together all pairs at the same moment, as the links of a ring
 * are. A line of JSON for each pair: {"from":0,"to":1,"access":true,"gib_s":378.1}; access: whether the
 * driver offers a way that does not lead through host memory.
 */
#include "load/clock.h"
#include "load/driver.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PAIRS_MAX 64
#define DEVICES_MAX 64
#define MIB (1u << 20)
#define IN_FLIGHT 8 /* copies queued at a time: enough that the link is never idle */

struct pair {
	int from, to;
	bool has_access;
	CUdeviceptr source, target;
	CUstream stream;
	unsigned long long copies;
	double gib_s;
};

static struct driver driver;
static CUcontext context[DEVICES_MAX];

static CUcontext context_of(int device)
{
	if (!context[device]) {
		CUdevice dev;
		DRIVER_DO(&driver, device_get, &dev, device);
		DRIVER_DO(&driver, primary_retain, &context[device], dev);
	}
	return context[device];
}

/* The pool of a card's memory is not asked for access: each block is one cuMemAlloc. */
static void open_pair(struct pair *p, size_t bytes)
{
	CUdevice from, to;
	int can = 0;

	DRIVER_DO(&driver, device_get, &from, p->from);
	DRIVER_DO(&driver, device_get, &to, p->to);
	DRIVER_DO(&driver, can_access, &can, from, to);
	DRIVER_DO(&driver, ctx_set, context_of(p->to));
	DRIVER_DO(&driver, mem_alloc, &p->target, bytes);
	DRIVER_DO(&driver, ctx_set, context_of(p->from));
	DRIVER_DO(&driver, mem_alloc, &p->source, bytes);
	DRIVER_DO(&driver, stream_create, &p->stream, DRIVER_STREAM_NON_BLOCKING);
	if (can) {
		DRIVER_DO(&driver, ctx_set, context_of(p->from));
		/* Two pairs may be of the same cards. */
		CUresult r = driver.enable_access(context_of(p->to), 0);
		p->has_access = r == CUDA_SUCCESS || r == CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED;
	}
}

static void close_pair(struct pair *p)
{
	DRIVER_DO(&driver, ctx_set, context_of(p->from));
	DRIVER_DO(&driver, stream_destroy, p->stream);
	DRIVER_DO(&driver, mem_free, p->source);
	DRIVER_DO(&driver, ctx_set, context_of(p->to));
	DRIVER_DO(&driver, mem_free, p->target);
}

static void copy(struct pair *p, size_t bytes)
{
	DRIVER_DO(&driver, ctx_set, context_of(p->from));
	DRIVER_DO(&driver, copy_peer, p->target, context_of(p->to), p->source, context_of(p->from),
		  bytes, p->stream);
	p->copies++;
}

/* By turns, so that no link waits until another's queue is full. */
static void step(struct pair *pairs, size_t count, size_t bytes)
{
	for (int n = 0; n < IN_FLIGHT; n++)
		for (size_t i = 0; i < count; i++)
			copy(&pairs[i], bytes);
	for (size_t i = 0; i < count; i++) {
		DRIVER_DO(&driver, ctx_set, context_of(pairs[i].from));
		DRIVER_DO(&driver, stream_sync, pairs[i].stream);
	}
}

/* All of them, in steps of so many copies each, until `seconds` have gone: together each goes as the slowest. */
static void measure(struct pair *pairs, size_t count, size_t bytes, double seconds)
{
	uint64_t begin_ns, end_ns;

	/* The first copy over a link may set it up. */
	step(pairs, count, bytes);
	for (size_t i = 0; i < count; i++)
		pairs[i].copies = 0;
	begin_ns = clock_now_ns();
	end_ns = begin_ns + (uint64_t)(seconds * 1e9);
	do
		step(pairs, count, bytes);
	while (clock_now_ns() < end_ns);
	for (size_t i = 0; i < count; i++) {
		double s = (double)(clock_now_ns() - begin_ns) / 1e9;
		pairs[i].gib_s = (double)pairs[i].copies * (double)bytes / s / (1024.0 * MIB);
	}
}

static int usage(void)
{
	fprintf(stderr, "usage: peer-copy [--mib N] [--seconds S] [--together] A-B [A-B...]\n");
	return 2;
}

int main(int argc, char **argv)
{
	struct pair pairs[PAIRS_MAX] = { 0 };
	size_t count = 0, bytes = 256 * (size_t)MIB;
	double seconds = 1;
	bool is_together = false;

	for (int i = 1; i < argc; i++) {
		char rest;
		if (!strcmp(argv[i], "--mib") && i + 1 < argc)
			bytes = strtoul(argv[++i], NULL, 10) * MIB;
		else if (!strcmp(argv[i], "--seconds") && i + 1 < argc)
			seconds = strtod(argv[++i], NULL);
		else if (!strcmp(argv[i], "--together"))
			is_together = true;
		else if (count == PAIRS_MAX ||
			 sscanf(argv[i], "%2d-%2d%c", &pairs[count].from, &pairs[count].to,
				&rest) != 2 ||
			 pairs[count].from < 0 || pairs[count].to < 0 ||
			 pairs[count].from >= DEVICES_MAX || pairs[count].to >= DEVICES_MAX ||
			 pairs[count].from == pairs[count].to)
			return usage();
		else
			count++;
	}
	if (!count || !bytes || !(seconds > 0))
		return usage();
	driver_open(&driver);
	for (size_t i = 0; i < count; i++)
		open_pair(&pairs[i], bytes);
	for (size_t i = 0; i < count; i += is_together ? count : 1)
		measure(&pairs[i], is_together ? count : 1, bytes, seconds);
	for (size_t i = 0; i < count; i++)
		printf("{\"from\":%d,\"to\":%d,\"access\":%s,\"gib_s\":%.4f}\n", pairs[i].from,
		       pairs[i].to, pairs[i].has_access ? "true" : "false", pairs[i].gib_s);
	for (size_t i = 0; i < count; i++)
		close_pair(&pairs[i]);
	return 0;
}
