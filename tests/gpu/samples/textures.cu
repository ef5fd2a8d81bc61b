/* Texture objects over an array, pitched memory, linear memory and a mipmapped array. */
#include "sample.cuh"

constexpr int SIDE = 1024;

static __global__ void look_2d(float *out, cudaTextureObject_t texture)
{
	int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;

	out[y * SIDE + x] = tex2D<float>(texture, x + 0.25f, y * 0.5f);
}

static __global__ void look_linear(float *out, cudaTextureObject_t texture)
{
	int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;

	out[y * SIDE + x] = tex1Dfetch<float>(texture, (y * SIDE + x) ^ 21);
}

static __global__ void look_mip(float *out, cudaTextureObject_t texture)
{
	int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;

	out[y * SIDE + x] = tex2DLod<float>(texture, (x + 0.5f) / SIDE, (y + 0.5f) / SIDE,
					    (float)(x % 40) / 10);
}

static cudaTextureObject_t texture_of(const cudaResourceDesc &resource, bool is_normalized)
{
	cudaTextureDesc how = {};
	cudaTextureObject_t texture;

	how.addressMode[0] = how.addressMode[1] = cudaAddressModeClamp;
	how.filterMode = resource.resType == cudaResourceTypeLinear ? cudaFilterModePoint
								    : cudaFilterModeLinear;
	how.mipmapFilterMode = cudaFilterModeLinear;
	how.maxMipmapLevelClamp = 10;
	how.normalizedCoords = is_normalized;
	OK(cudaCreateTextureObject(&texture, &resource, &how, nullptr));
	return texture;
}

int main(int argc, char **argv)
{
	const dim3 blocks(SIDE / 16, SIDE / 16), threads(16, 16);
	const size_t row = SIDE * sizeof(float);
	cudaChannelFormatDesc format = cudaCreateChannelDesc<float>();
	cudaChannelFormatDesc wide = cudaCreateChannelDesc<float4>();
	std::vector<float> host(SIDE * SIDE);
	cudaResourceDesc resource[4] = {};
	cudaTextureObject_t texture[4];
	cudaMipmappedArray_t mipmap, piece[16];
	cudaArray_t array, level;
	float *linear, *out;
	char *pitched;
	size_t pitch;

	begin(argc, argv);
	for (size_t i = 0; i < host.size(); i++)
		host[i] = (float)(mix((uint32_t)i) % 4096) / 16;
	OK(cudaMalloc(&out, SIDE * row));
	OK(cudaMallocArray(&array, &format, SIDE, SIDE));
	OK(cudaMallocPitch(&pitched, &pitch, row, SIDE));
	OK(cudaMalloc(&linear, SIDE * row));
	OK(cudaMallocMipmappedArray(&mipmap, &format, make_cudaExtent(SIDE, SIDE, 0), 5));
	OK(cudaMemcpy2DToArray(array, 0, 0, host.data(), row, row, SIDE, cudaMemcpyHostToDevice));
	OK(cudaMemcpy2D(pitched, pitch, host.data(), row, row, SIDE, cudaMemcpyHostToDevice));
	OK(cudaMemcpy(linear, host.data(), SIDE * row, cudaMemcpyHostToDevice));
	for (unsigned int i = 0; i < 5; i++) {
		OK(cudaGetMipmappedArrayLevel(&level, mipmap, i));
		OK(cudaMemcpy2DToArray(level, 0, 0, host.data() + i * 1000, row >> i, row >> i,
				       SIDE >> i, cudaMemcpyHostToDevice));
	}
	resource[0].resType = cudaResourceTypeArray;
	resource[0].res.array.array = array;
	resource[1].resType = cudaResourceTypePitch2D;
	resource[1].res.pitch2D = { pitched, format, SIDE, SIDE, pitch };
	resource[2].resType = cudaResourceTypeLinear;
	resource[2].res.linear = { linear, format, SIDE * row };
	resource[3].resType = cudaResourceTypeMipmappedArray;
	resource[3].res.mipmap.mipmap = mipmap;
	for (int i = 0; i < 4; i++) {
		texture[i] = texture_of(resource[i], i == 3);
		auto *kernel = i < 2 ? look_2d : i == 2 ? look_linear : look_mip;
		kernel<<<blocks, threads>>>(out, texture[i]);
		take_device(out, SIDE * row);
	}
	hold("textures");
	over_in_pieces(
		"cudaMallocMipmappedArray",
		[&](int i, size_t bytes) {
			cudaExtent e = { 8192, bytes / 8192 / sizeof(float4), 0 };
			return cudaMallocMipmappedArray(&piece[i], &wide, e, 4);
		},
		[&](int i) { OK(cudaFreeMipmappedArray(piece[i])); });
	for (cudaTextureObject_t t : texture)
		OK(cudaDestroyTextureObject(t));
	OK(cudaFreeMipmappedArray(mipmap));
	OK(cudaFreeArray(array));
	OK(cudaFree(pitched));
	OK(cudaFree(linear));
	OK(cudaFree(out));
	end();
}
