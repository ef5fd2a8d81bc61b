/* Memory that no call names: stacks, the FIFO of printf, the heap of malloc in kernels. */
#include "sample.cuh"

/* Uses the stack by depth: the compiler can't know how deep. */
static __device__ __noinline__ uint32_t deep(uint32_t x, int depth)
{
	uint32_t local[64];

	for (int i = 0; i < 64; i++)
		local[i] = mix(x + i);
	if (depth > 0)
		x = deep(local[x % 64], depth - 1);
	return x + local[(x >> 8) % 64];
}

static __global__ void recurse(uint32_t *out, int depth)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;

	out[i] = deep((uint32_t)i, depth);
}

static __global__ void tell()
{
	if (threadIdx.x == 0 && blockIdx.x % 100 == 0)
		printf("block %d\n", blockIdx.x);
}

/* Each thread builds a list on the heap, and adds it up. */
static __global__ void use_heap(uint32_t *out, int *failures)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;
	uint32_t *mine = (uint32_t *)malloc(4 * KIB), sum = 0;

	if (!mine) {
		atomicAdd(failures, 1);
		return;
	}
	for (int j = 0; j < 1024; j++)
		mine[j] = mix((uint32_t)(i * 1024 + j));
	for (int j = 0; j < 1024; j++)
		sum += mine[j];
	out[i] = sum;
	free(mine);
}

int main(int argc, char **argv)
{
	const int n = 64 * 256;
	size_t at_first, now, total;
	uint32_t *out;
	int *failures;
	void *p;

	begin(argc, argv);
	OK(cudaMemGetInfo(&at_first, &total));
	/* These two as long as no kernel uses them. */
	OK(cudaDeviceSetLimit(cudaLimitMallocHeapSize, 256 * MIB));
	OK(cudaDeviceSetLimit(cudaLimitPrintfFifoSize, 64 * MIB));
	OK(cudaMalloc(&out, n * 4));
	OK(cudaMalloc(&failures, sizeof(*failures)));
	OK(cudaMemset(failures, 0, sizeof(*failures)));
	use_heap<<<64, 256>>>(out, failures);
	take_device(out, n * 4);
	take_device(failures, sizeof(*failures));
	tell<<<1000, 64>>>();
	hold("heap and FIFO");
	/* 2,048 threads of each multiprocessor have such a stack: 1 GiB on 132 of them. */
	OK(cudaDeviceSetLimit(cudaLimitStackSize, 4 * KIB));
	recurse<<<64, 256>>>(out, 8);
	take_device(out, n * 4);
	hold("stacks of 4 KiB");
	OK(cudaMemGetInfo(&now, &total));
	say("by no call's name: %zu MiB", (at_first - now) / MIB);
	if (sample.quota_bytes) {
		/* Would fit if these bytes were not counted. */
		over("cudaMalloc of what was free at first", cudaMalloc(&p, at_first - 64 * MIB));
		/* In stacks, the card's 270,336 threads have 16 KiB each: 4 GiB. */
		cudaError_t error = cudaDeviceSetLimit(cudaLimitStackSize, 16 * KIB);
		if (error == cudaSuccess) {
			recurse<<<64, 256>>>(out, 8);
			error = cudaGetLastError();
		}
		over("stacks larger than the quota", error);
		hold("after larger stacks");
	}
	OK(cudaDeviceSetLimit(cudaLimitStackSize, 1 * KIB));
	OK(cudaFree(out));
	OK(cudaFree(failures));
	end();
}
