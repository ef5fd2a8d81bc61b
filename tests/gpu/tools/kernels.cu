/*
 * Twenty launches of a kernel for the tools that watch one. With "fault" the last of them writes past
 * the end of its buffer, which compute-sanitizer names. Prints the sum that the kernels made.
 */
#include <cstdio>
#include <cstring>

__global__ void add_one(int *value, int count)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i < count)
		value[i] += 1;
}

static bool check(cudaError_t error, const char *what)
{
	if (error != cudaSuccess)
		fprintf(stderr, "%s: %s\n", what, cudaGetErrorName(error));
	return error == cudaSuccess;
}

int main(int argc, char **argv)
{
	bool has_fault = argc > 1 && !strcmp(argv[1], "fault");
	enum { COUNT = 1024, LAUNCHES = 20 };
	static int host[COUNT];
	int *value;
	long sum = 0;

	if (!check(cudaMalloc(&value, sizeof(host)), "cudaMalloc") ||
	    !check(cudaMemset(value, 0, sizeof(host)), "cudaMemset"))
		return 1;
	for (int i = 0; i < LAUNCHES; i++)
		add_one<<<COUNT / 256 + has_fault, 256>>>(value, COUNT + (has_fault && i == LAUNCHES - 1));
	if (!check(cudaMemcpy(host, value, sizeof(host), cudaMemcpyDeviceToHost), "cudaMemcpy"))
		return 1;
	for (int i = 0; i < COUNT; i++)
		sum += host[i];
	printf("sum %ld\n", sum);
	cudaFree(value);
	return sum != (long)COUNT * LAUNCHES;
}
