/*
 * Prints a line for each GPU: its total memory, and the results of two allocations. Fails if cuMemGetInfo and
 * cuDeviceTotalMem report different totals. Then waits for the end of its standard input.
 *
 *     quota FIRST_MIB SECOND_MIB
 */
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int cuInit(unsigned);
int cuDeviceGetCount(int *);
int cuDeviceTotalMem_v2(size_t *, int);
int cuMemGetInfo_v2(size_t *, size_t *);
int cuDevicePrimaryCtxRetain(void **, int);
int cuCtxSetCurrent(void *);
int cuMemAlloc_v2(uint64_t *, size_t);

int main(int argc, char **argv)
{
	int count = 0;
	void *context;
	uint64_t at;
	size_t free_bytes, total, device_total;

	if (argc != 3 || cuInit(0) || cuDeviceGetCount(&count))
		return 1;
	for (int i = 0; i < count; i++) {
		if (cuDeviceTotalMem_v2(&device_total, i) ||
		    cuDevicePrimaryCtxRetain(&context, i) || cuCtxSetCurrent(context) ||
		    cuMemGetInfo_v2(&free_bytes, &total) || total != device_total)
			return 1;
		printf("device %d total %zu", i, total >> 20);
		printf(" first %d", cuMemAlloc_v2(&at, (size_t)atol(argv[1]) << 20));
		printf(" second %d\n", cuMemAlloc_v2(&at, (size_t)atol(argv[2]) << 20));
	}
	printf("end\n");
	fflush(stdout);
	while (getchar() != EOF)
		;
	return 0;
}
