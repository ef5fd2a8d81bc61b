/* Records the kernels of its own by CUPTI's activity interface and prints how many it saw, and their name. */
#include <cstdio>
#include <cstdlib>
#include <cupti.h>

static unsigned seen;
static char name[64];

static void CUPTIAPI buffer_wanted(uint8_t **buffer, size_t *size, size_t *most)
{
	*size = 1 << 20;
	*buffer = (uint8_t *)aligned_alloc(8, *size);
	*most = 0;
}

static void CUPTIAPI buffer_full(CUcontext context, uint32_t stream, uint8_t *buffer, size_t size,
				 size_t valid)
{
	CUpti_Activity *record = NULL;

	while (cuptiActivityGetNextRecord(buffer, valid, &record) == CUPTI_SUCCESS)
		if (record->kind == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL) {
			/* The name has its place since the first version of the record. */
			snprintf(name, sizeof(name), "%s", ((CUpti_ActivityKernel9 *)record)->name);
			seen++;
		}
	free(buffer);
}

__global__ void watched(int *value)
{
	atomicAdd(value, 1);
}

int main()
{
	int *value, host = 0;

	if (cuptiActivityRegisterCallbacks(buffer_wanted, buffer_full) != CUPTI_SUCCESS ||
	    cuptiActivityEnable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL) != CUPTI_SUCCESS) {
		fprintf(stderr, "CUPTI records no activity here\n");
		return 1;
	}
	if (cudaMalloc(&value, sizeof(*value)) != cudaSuccess)
		return 1;
	cudaMemset(value, 0, sizeof(*value));
	for (int i = 0; i < 7; i++)
		watched<<<1, 32>>>(value);
	cudaMemcpy(&host, value, sizeof(host), cudaMemcpyDeviceToHost);
	cuptiActivityFlushAll(1);
	printf("activity %u %s value %d\n", seen, name, host);
	return 0;
}
