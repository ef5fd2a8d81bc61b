/*
 * liar SECONDS: registers with the library, and from then on claims that its work is in flight, without any. Linked with the
 * driver. Prints "begun".
 */
#define _GNU_SOURCE
#include <stdlib.h>

#include "training.h"

#include "slot.h"

int main(int argc, char **argv)
{
	cu_context context;
	if (argc != 2)
		return 2;
	check(cuInit(0), "init");
	check(cuDevicePrimaryCtxRetain(&context, 0), "context");
	check(cuCtxSetCurrent(context), "current");
	struct region_slot_device *slot = find_slot(find_report());
	if (!slot)
		return 3;
	puts("begun");
	fflush(stdout);
	for (double end = now_s() + atof(argv[1]); now_s() < end; usleep(500)) {
		slot->launching = 1;
		slot->busy = 1;
		slot->inflight_ns = 1000000000;
		slot->busy_ns += 500000;
		slot->launches++;
	}
	return 0;
}
