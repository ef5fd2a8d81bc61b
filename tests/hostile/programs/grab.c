/*
 * Makes a context, says "ready", and for each line "MIB" that it reads allocates that much, for good. Prints what
 * came of it: the driver's result.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

int cuInit(unsigned);
int cuDevicePrimaryCtxRetain(void **, int);
int cuCtxSetCurrent(void *);
int cuMemAlloc_v2(uint64_t *, size_t);

int main(void)
{
	unsigned mib;
	void *context;
	uint64_t at;
	if (cuInit(0) || cuDevicePrimaryCtxRetain(&context, 0) || cuCtxSetCurrent(context))
		return 1;
	setlinebuf(stdout);
	puts("ready");
	while (scanf("%u", &mib) == 1)
		printf("%d\n", cuMemAlloc_v2(&at, (size_t)mib << 20));
	return 0;
}
