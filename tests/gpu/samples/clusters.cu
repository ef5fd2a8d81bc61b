/* Clusters of thread blocks, which read each other's shared memory. */
#include <cooperative_groups.h>

#include "sample.cuh"

namespace cg = cooperative_groups;

static __global__ void turn_round(const uint32_t *in, uint32_t *out)
{
	__shared__ uint32_t mine[256];
	cg::cluster_group cluster = cg::this_cluster();
	unsigned int next = (cluster.block_rank() + 1) % cluster.num_blocks();

	mine[threadIdx.x] = in[blockIdx.x * 256 + threadIdx.x];
	cluster.sync();
	uint32_t *theirs = cluster.map_shared_rank(mine, next);
	out[blockIdx.x * 256 + threadIdx.x] = mix(theirs[255 - threadIdx.x] + blockIdx.x);
	cluster.sync();
}

int main(int argc, char **argv)
{
	const size_t n = 8 * 1024 * 256;
	cudaLaunchAttribute attribute = {};
	cudaLaunchConfig_t config = {};
	uint32_t *in, *out;

	begin(argc, argv);
	OK(cudaMalloc(&in, n * 4));
	OK(cudaMalloc(&out, n * 4));
	config.gridDim = dim3(n / 256);
	config.blockDim = dim3(256);
	config.attrs = &attribute;
	config.numAttrs = 1;
	attribute.id = cudaLaunchAttributeClusterDimension;
	for (unsigned int size : { 2u, 4u, 8u }) {
		attribute.val.clusterDim.x = size;
		attribute.val.clusterDim.y = attribute.val.clusterDim.z = 1;
		fill(in, n * 4, size);
		OK(cudaLaunchKernelEx(&config, turn_round, (const uint32_t *)in, out));
		take_device(out, n * 4);
	}
	hold("clusters");
	OK(cudaFree(in));
	OK(cudaFree(out));
	end();
}
