/* Uses a GPU by NVIDIA's own CUDA runtime. */
#include <stddef.h>
#include <stdio.h>

int cudaMalloc(void **ret, size_t bytes);
int cudaFree(void *pointer);
int cudaMemGetInfo(size_t *ret_free, size_t *ret_total);
int cudaDeviceReset(void);
const char *cudaGetErrorName(int error);

int main(void)
{
	void *small = NULL, *large = NULL;
	size_t left = 0, total = 0;

	printf("fits %s\n", cudaGetErrorName(cudaMalloc(&small, (size_t)1 << 30)));
	printf("too much %s\n", cudaGetErrorName(cudaMalloc(&large, (size_t)8 << 30)));
	cudaMemGetInfo(&left, &total);
	printf("total %zu\n", total);
	printf("free %s\n", cudaGetErrorName(cudaFree(small)));
	printf("reset %s\n", cudaGetErrorName(cudaDeviceReset()));
	return 0;
}
