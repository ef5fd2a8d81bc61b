/*
 * Prints a line "INDEX MIB" for each GPU whenever its total memory by cuMemGetInfo has changed. Runs until it is ended.
 */
#include <stddef.h>
#include <stdio.h>
#include <unistd.h>

#define MOST_GPUS 16

int cuInit(unsigned);
int cuDeviceGetCount(int *);
int cuDevicePrimaryCtxRetain(void **, int);
int cuCtxSetCurrent(void *);
int cuMemGetInfo_v2(size_t *, size_t *);

int main(void)
{
	void *context[MOST_GPUS];
	size_t printed[MOST_GPUS] = { 0 }, free_bytes, total;
	int count = 0;

	if (cuInit(0) || cuDeviceGetCount(&count) || count > MOST_GPUS)
		return 1;
	for (int i = 0; i < count; i++)
		if (cuDevicePrimaryCtxRetain(&context[i], i))
			return 1;
	for (;; usleep(100000))
		for (int i = 0; i < count; i++) {
			if (cuCtxSetCurrent(context[i]) || cuMemGetInfo_v2(&free_bytes, &total))
				return 1;
			if (total == printed[i])
				continue;
			printf("%d %zu\n", i, total >> 20);
			fflush(stdout);
			printed[i] = total;
		}
}
