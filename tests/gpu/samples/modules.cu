/* Code that brings memory with it: libraries and modules whose variables take 64 MiB and more. */
#include "driver.cuh"

#include <string>

static std::string source(size_t bytes)
{
	return ".version 7.8\n.target sm_90\n.address_size 64\n"
	       ".visible .global .align 16 .b8 large[" + std::to_string(bytes) + "];\n"
	       ".visible .entry bump()\n{\n"
	       "  .reg .b32 %r<6>; .reg .b64 %rd<4>;\n"
	       "  mov.u32 %r1, %ctaid.x;\n  mov.u32 %r2, %ntid.x;\n  mov.u32 %r3, %tid.x;\n"
	       "  mad.lo.s32 %r4, %r1, %r2, %r3;\n"
	       "  mul.wide.u32 %rd1, %r4, 4;\n"
	       "  mov.u64 %rd2, large;\n  add.u64 %rd3, %rd2, %rd1;\n"
	       "  ld.global.u32 %r5, [%rd3];\n  add.u32 %r5, %r5, %r4;\n"
	       "  st.global.u32 [%rd3], %r5;\n  ret;\n}\n";
}

/* Of this program itself: loaded by its first use. */
static __device__ uint32_t own[16 * MIB];

static __global__ void use_own()
{
	size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x;

	own[i] = mix((uint32_t)i);
}

static void run(CUfunction bump, size_t bytes)
{
	for (int turn = 0; turn < 3; turn++)
		OK(DRIVER(cuLaunchKernel)(bump, (unsigned int)(bytes / 4 / 256), 1, 1, 256, 1, 1, 0,
					  nullptr, nullptr, nullptr));
}

static void use_library(size_t bytes)
{
	CUlibrary library;
	CUfunction bump;
	CUkernel kernel;
	CUdeviceptr large;
	size_t large_bytes;

	OK(DRIVER(cuLibraryLoadData)(&library, source(bytes).c_str(), nullptr, nullptr, 0, nullptr,
				     nullptr, 0));
	hold("library loaded, unused");
	OK(DRIVER(cuLibraryGetGlobal)(&large, &large_bytes, library, "large"));
	OK(DRIVER(cuLibraryGetKernel)(&kernel, library, "bump"));
	OK(DRIVER(cuKernelGetFunction)(&bump, kernel));
	run(bump, bytes);
	hold("library used");
	take(large_bytes);
	take_device((void *)large, large_bytes);
	OK(DRIVER(cuLibraryUnload)(library));
	hold("library unloaded");
}

static void use_module(size_t bytes)
{
	CUmodule module;
	CUfunction bump;
	CUdeviceptr large;
	size_t large_bytes;

	OK(DRIVER(cuModuleLoadData)(&module, source(bytes).c_str()));
	OK(DRIVER(cuModuleGetGlobal)(&large, &large_bytes, module, "large"));
	OK(DRIVER(cuModuleGetFunction)(&bump, module, "bump"));
	run(bump, bytes);
	hold("module used");
	take_device((void *)large, large_bytes);
	OK(DRIVER(cuModuleUnload)(module));
}

/* Till one is refused, or variables of twice the quota are on the card. */
static void go_over()
{
	const size_t piece = sample.quota_bytes / 8;
	std::vector<CUmodule> modules;
	CUresult result = CUDA_SUCCESS;
	size_t free_bytes, total;
	void *p;

	OK(cudaMemGetInfo(&free_bytes, &total));
	for (size_t left = free_bytes / 2; left >= piece; left -= piece) {
		modules.emplace_back();
		OK(DRIVER(cuModuleLoadData)(&modules.back(), source(piece).c_str()));
	}
	hold("half of the quota in variables");
	over("cudaMalloc of what was free before", cudaMalloc(&p, free_bytes - 64 * MIB));
	while (result == CUDA_SUCCESS && modules.size() < 16) {
		CUmodule module;

		result = DRIVER(cuModuleLoadData)(&module, source(piece).c_str());
		if (result == CUDA_SUCCESS)
			modules.push_back(module);
	}
	over("variables of modules, in pieces", result);
	hold("variables, full");
	for (CUmodule module : modules)
		OK(DRIVER(cuModuleUnload)(module));
}

int main(int argc, char **argv)
{
	begin(argc, argv);
	OK(cudaFree(nullptr));
	use_library(64 * MIB);
	use_module(64 * MIB);
	use_own<<<16 * MIB / 256, 256>>>();
	OK(cudaGetLastError());
	hold("own variables used");
	void *mine;
	OK(cudaGetSymbolAddress(&mine, own));
	take_device(mine, sizeof(own));
	if (sample.quota_bytes)
		go_over();
	end();
}
