/* CUDA arrays of every shape, by copies alone: 1D, 2D, 3D, layered, cubemap, cubemap layered. */
#include "sample.cuh"

static const struct {
	cudaExtent extent;
	unsigned int flags;
} shapes[] = {
	{ { 8192, 0, 0 }, 0 },
	{ { 1920, 1080, 0 }, 0 },
	{ { 300, 200, 100 }, 0 },
	{ { 500, 0, 64 }, cudaArrayLayered },
	{ { 640, 480, 12 }, cudaArrayLayered },
	{ { 512, 512, 6 }, cudaArrayCubemap },
	{ { 128, 128, 6 * 8 }, cudaArrayCubemap | cudaArrayLayered },
};
constexpr int SHAPES = sizeof(shapes) / sizeof(shapes[0]);

static cudaExtent at_least_one(cudaExtent e)
{
	return make_cudaExtent(e.width, e.height ? e.height : 1, e.depth ? e.depth : 1);
}

/* Into the array, into a second one, and back. */
static void round_trip(cudaArray_t first, cudaArray_t second, cudaExtent extent, uint32_t seed)
{
	const size_t row = extent.width * sizeof(float4);
	std::vector<uint32_t> in(row / 4 * extent.height * extent.depth), out(in.size());
	cudaMemcpy3DParms copy = {};

	for (size_t i = 0; i < in.size(); i++)
		in[i] = mix((uint32_t)i + seed);
	copy.srcPtr = make_cudaPitchedPtr(in.data(), row, row, extent.height);
	copy.dstArray = first;
	copy.extent = extent;
	copy.kind = cudaMemcpyHostToDevice;
	OK(cudaMemcpy3D(&copy));
	copy.srcPtr = {};
	copy.srcArray = first;
	copy.dstArray = second;
	copy.kind = cudaMemcpyDeviceToDevice;
	OK(cudaMemcpy3D(&copy));
	copy.srcArray = second;
	copy.dstArray = nullptr;
	copy.dstPtr = make_cudaPitchedPtr(out.data(), row, row, extent.height);
	copy.kind = cudaMemcpyDeviceToHost;
	OK(cudaMemcpy3D(&copy));
	expect(in == out, "the bytes come back as they were");
	take(out.data(), out.size() * 4);
}

int main(int argc, char **argv)
{
	cudaChannelFormatDesc format = cudaCreateChannelDesc<float4>();
	cudaArray_t arrays[SHAPES][2], piece[16];

	begin(argc, argv);
	for (int s = 0; s < SHAPES; s++)
		for (cudaArray_t &array : arrays[s])
			OK(cudaMalloc3DArray(&array, &format, shapes[s].extent, shapes[s].flags));
	for (int s = 0; s < SHAPES; s++)
		round_trip(arrays[s][0], arrays[s][1], at_least_one(shapes[s].extent),
			   (uint32_t)s);
	hold("arrays");
	over_in_pieces(
		"cudaMallocArray",
		[&](int i, size_t bytes) {
			return cudaMallocArray(&piece[i], &format, 8192,
					       bytes / 8192 / sizeof(float4));
		},
		[&](int i) { OK(cudaFreeArray(piece[i])); });
	over_in_pieces(
		"cudaMalloc3DArray",
		[&](int i, size_t bytes) {
			cudaExtent e = { 512, 256, bytes / 512 / 256 / sizeof(float4) };
			return cudaMalloc3DArray(&piece[i], &format, e);
		},
		[&](int i) { OK(cudaFreeArray(piece[i])); });
	for (auto &pair : arrays)
		for (cudaArray_t array : pair)
			OK(cudaFreeArray(array));
	end();
}
