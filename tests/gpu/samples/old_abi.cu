/* Functions of before CUDA 3.2, with sizes of 32 bits: whatever today's driver answers to them. */
#include "driver.cuh"

using address = unsigned int;
using whole = unsigned int;

/* The array descriptor of those days. */
struct old_array {
	unsigned int width, height;
	CUarray_format format;
	unsigned int channels;
};

template <typename... Args> static CUresult call(const char *name, Args... args)
{
	CUresult result = ((CUresult(*)(Args...))driver_symbol(name))(args...);

	say("%s: %d", name, (int)result);
	take(result);
	return result;
}

int main(int argc, char **argv)
{
	old_array desc = { 256, 256, CU_AD_FORMAT_FLOAT, 1 };
	whole free_bytes = 0, total = 0, pitch = 0;
	uint32_t in[64], out[64] = {};
	CUcontext context = nullptr, popped;
	CUarray array = nullptr;
	address p = 0;
	void *now;

	begin(argc, argv);
	for (uint32_t i = 0; i < 64; i++)
		in[i] = mix(i);
	OK(cudaMalloc(&now, 16 * MIB));
	call("cuDeviceTotalMem", &total, (CUdevice)0);
	call("cuMemGetInfo", &free_bytes, &total);
	if (call("cuMemAlloc", &p, (whole)sizeof(in)) == CUDA_SUCCESS) {
		call("cuMemcpyHtoD", p, (const void *)in, (whole)sizeof(in));
		call("cuMemcpyDtoH", (void *)out, p, (whole)sizeof(out));
		take(out);
		call("cuMemsetD32", p, 7u, (whole)64);
		call("cuMemFree", p);
	}
	if (call("cuMemAllocPitch", &p, &pitch, (whole)1000, (whole)100, 4u) == CUDA_SUCCESS)
		call("cuMemFree", p);
	if (call("cuArrayCreate", &array, (const old_array *)&desc) == CUDA_SUCCESS)
		OK(DRIVER(cuArrayDestroy)(array));
	hold("old calls");
	if (call("cuCtxCreate", &context, 0u, (CUdevice)0) == CUDA_SUCCESS) {
		hold("a context by an old call");
		OK(DRIVER(cuCtxPopCurrent)(&popped));
		call("cuCtxDestroy", context);
	}
	OK(cudaFree(now));
	end();
}
