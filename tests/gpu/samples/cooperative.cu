/* A cooperative launch: blocks that wait for each other, all over the grid. */
#include <cooperative_groups.h>

#include "sample.cuh"

namespace cg = cooperative_groups;

/* Each turn reads what the neighbours on both sides wrote in the one before. */
static __global__ void ring(uint32_t *from, uint32_t *to, int n, int turns)
{
	cg::grid_group grid = cg::this_grid();

	for (int turn = 0; turn < turns; turn++) {
		for (int i = (int)grid.thread_rank(); i < n; i += (int)grid.size())
			to[i] = mix(from[(i + n - 1) % n] + 3 * from[(i + 1) % n]);
		grid.sync();
		uint32_t *was = from;
		from = to;
		to = was;
	}
}

int main(int argc, char **argv)
{
	int n = 1 << 20, turns = 200, blocks = 0;
	cudaDeviceProp about;
	uint32_t *a, *b;

	begin(argc, argv);
	OK(cudaGetDeviceProperties(&about, 0));
	if (!about.cooperativeLaunch)
		skip("no cooperative launches");
	OK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, ring, 256, 0));
	OK(cudaMalloc(&a, n * 4));
	OK(cudaMalloc(&b, n * 4));
	for (int i = 0; i < 5; i++) {
		fill(a, n * 4, (uint32_t)i);
		void *args[] = { &a, &b, &n, &turns };
		OK(cudaLaunchCooperativeKernel((void *)ring, blocks * about.multiProcessorCount, 256,
					       args));
		take_device(a, n * 4);
	}
	hold("cooperative");
	OK(cudaFree(a));
	OK(cudaFree(b));
	end();
}
