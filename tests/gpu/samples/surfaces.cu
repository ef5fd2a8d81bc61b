/* Surface objects: kernels load and store in arrays of 1, 2 and 3 dimensions, layers and cubes. */
#include "sample.cuh"

constexpr int SIDE = 256;

enum shape { LINE, PLANE, VOLUME, LAYERS, CUBE, SHAPES };

/* Writes when turn is 0, and changes what is there after that. */
static __global__ void paint(cudaSurfaceObject_t surface, int shape, int turn)
{
	int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y, z = blockIdx.z;
	uint32_t value = mix((z * SIDE + y) * SIDE + x);

	switch (shape) {
	case LINE:
		if (turn)
			value = mix(value + surf1Dread<uint32_t>(surface, x * 4));
		surf1Dwrite(value, surface, x * 4);
		break;
	case PLANE:
		if (turn)
			value = mix(value + surf2Dread<uint32_t>(surface, x * 4, y));
		surf2Dwrite(value, surface, x * 4, y);
		break;
	case VOLUME:
		if (turn)
			value = mix(value + surf3Dread<uint32_t>(surface, x * 4, y, z));
		surf3Dwrite(value, surface, x * 4, y, z);
		break;
	case LAYERS:
		if (turn)
			value = mix(value + surf2DLayeredread<uint32_t>(surface, x * 4, y, z));
		surf2DLayeredwrite(value, surface, x * 4, y, z);
		break;
	case CUBE:
		if (turn)
			value = mix(value + surfCubemapread<uint32_t>(surface, x * 4, y, z));
		surfCubemapwrite(value, surface, x * 4, y, z);
		break;
	}
}

int main(int argc, char **argv)
{
	static const struct {
		cudaExtent extent;
		unsigned int flags;
	} rows[SHAPES] = {
		{ { SIDE, 0, 0 }, 0 },
		{ { SIDE, SIDE, 0 }, 0 },
		{ { SIDE, SIDE, 64 }, 0 },
		{ { SIDE, SIDE, 16 }, cudaArrayLayered },
		{ { SIDE, SIDE, 6 }, cudaArrayCubemap },
	};
	cudaChannelFormatDesc format = cudaCreateChannelDesc<unsigned int>();
	cudaArray_t array[SHAPES], piece[16];
	cudaSurfaceObject_t surface[SHAPES];

	begin(argc, argv);
	for (int s = 0; s < SHAPES; s++) {
		cudaExtent e = rows[s].extent;
		unsigned int height = e.height ? e.height : 1, depth = e.depth ? e.depth : 1;
		cudaResourceDesc resource = {};

		OK(cudaMalloc3DArray(&array[s], &format, e,
				     rows[s].flags | cudaArraySurfaceLoadStore));
		resource.resType = cudaResourceTypeArray;
		resource.res.array.array = array[s];
		OK(cudaCreateSurfaceObject(&surface[s], &resource));
		for (int turn = 0; turn < 3; turn++)
			paint<<<dim3(1, height, depth), SIDE>>>(surface[s], s, turn);
		std::vector<uint32_t> host((size_t)SIDE * height * depth);
		cudaMemcpy3DParms copy = {};
		copy.srcArray = array[s];
		copy.dstPtr = make_cudaPitchedPtr(host.data(), SIDE * 4, SIDE * 4, height);
		copy.extent = make_cudaExtent(SIDE, height, depth);
		copy.kind = cudaMemcpyDeviceToHost;
		OK(cudaMemcpy3D(&copy));
		take(host.data(), host.size() * 4);
	}
	hold("surfaces");
	over_in_pieces(
		"a layered array for surfaces",
		[&](int i, size_t bytes) {
			cudaExtent e = { 2048, 1024, bytes / 2048 / 1024 / 4 };
			return cudaMalloc3DArray(&piece[i], &format, e,
						 cudaArrayLayered | cudaArraySurfaceLoadStore);
		},
		[&](int i) { OK(cudaFreeArray(piece[i])); });
	for (int s = 0; s < SHAPES; s++) {
		OK(cudaDestroySurfaceObject(surface[s]));
		OK(cudaFreeArray(array[s]));
	}
	end();
}
