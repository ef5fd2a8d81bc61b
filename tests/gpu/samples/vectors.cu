/* The simplest program: cudaMalloc, cudaMallocPitch, cudaMalloc3D, copies and kernels. */
#include "sample.cuh"

static __global__ void saxpy(float *y, const float *x, float a, size_t n)
{
	for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < n;
	     i += (size_t)gridDim.x * blockDim.x)
		y[i] = a * x[i] + y[i];
}

int main(int argc, char **argv)
{
	const size_t n = 16 * MIB, width = 4000, height = 1000;
	std::vector<float> host(n);
	float *x, *y;
	char *pitched;
	size_t pitch;
	cudaPitchedPtr volume;
	void *piece[16];

	begin(argc, argv);
	for (size_t i = 0; i < n; i++)
		host[i] = (float)(mix((uint32_t)i) % 1000) / 7;
	OK(cudaMalloc(&x, n * 4));
	OK(cudaMalloc(&y, n * 4));
	OK(cudaMallocPitch(&pitched, &pitch, width, height));
	OK(cudaMalloc3D(&volume, make_cudaExtent(1000, 100, 100)));
	OK(cudaMemcpy(x, host.data(), n * 4, cudaMemcpyHostToDevice));
	OK(cudaMemset(y, 0, n * 4));
	for (int turn = 0; turn < 10; turn++)
		saxpy<<<264, 256>>>(y, x, 0.5f + turn, n);
	OK(cudaMemset2D(pitched, pitch, 7, width, height));
	OK(cudaMemcpy2D(pitched, pitch, y, width, width, height / 2, cudaMemcpyDeviceToDevice));
	OK(cudaMemset3D(volume, 3, make_cudaExtent(1000, 100, 100)));
	hold("vectors");
	take_device(y, n * 4);
	std::vector<char> plane(width * height);
	OK(cudaMemcpy2D(plane.data(), width, pitched, pitch, width, height, cudaMemcpyDeviceToHost));
	take(plane.data(), plane.size());
	OK(cudaMemcpy2D(plane.data(), 1000, volume.ptr, volume.pitch, 1000, 100,
			cudaMemcpyDeviceToHost));
	take(plane.data(), 1000 * 100);
	over_in_pieces(
		"cudaMalloc", [&](int i, size_t bytes) { return cudaMalloc(&piece[i], bytes); },
		[&](int i) { OK(cudaFree(piece[i])); });
	over_in_pieces(
		"cudaMallocPitch",
		[&](int i, size_t bytes) {
			return cudaMallocPitch(&piece[i], &pitch, 16 * KIB, bytes / (16 * KIB));
		},
		[&](int i) { OK(cudaFree(piece[i])); });
	OK(cudaFree(x));
	OK(cudaFree(y));
	OK(cudaFree(pitched));
	OK(cudaFree(volume.ptr));
	end();
}
