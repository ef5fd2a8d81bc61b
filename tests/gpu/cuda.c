#include "cuda.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BLOCKS 132
#define THREADS 256

struct gpu gpu;

/* burn: dependent multiply-adds, a fixed number, as in bench/load/kernel.c and for its reasons. */
static const char ptx_body[] =
	".address_size 64\n"
	".visible .entry burn(.param .u32 turns)\n"
	"{\n"
	"  .reg .pred %p<3>; .reg .f32 %f<4>; .reg .b32 %r<3>;\n"
	"  ld.param.u32 %r1, [turns];\n"
	"  mov.u32 %r2, %tid.x;\n"
	"  cvt.rn.f32.u32 %f1, %r2;\n"
	"  mov.f32 %f2, 0f3F7FF000;\n"
	"  mov.f32 %f3, 0f3A83126F;\n"
	"  setp.eq.u32 %p1, %r1, 0;\n"
	"  @%p1 bra END;\n"
	"LOOP:\n"
	"  fma.rn.f32 %f1, %f1, %f2, %f3;\n"
	"  fma.rn.f32 %f1, %f1, %f2, %f3;\n"
	"  fma.rn.f32 %f1, %f1, %f2, %f3;\n"
	"  fma.rn.f32 %f1, %f1, %f2, %f3;\n"
	"  fma.rn.f32 %f1, %f1, %f2, %f3;\n"
	"  fma.rn.f32 %f1, %f1, %f2, %f3;\n"
	"  fma.rn.f32 %f1, %f1, %f2, %f3;\n"
	"  fma.rn.f32 %f1, %f1, %f2, %f3;\n"
	"  sub.u32 %r1, %r1, 1;\n"
	"  setp.ne.u32 %p1, %r1, 0;\n"
	"  @%p1 bra LOOP;\n"
	"END:\n"
	"  setp.eq.f32 %p2, %f1, 0f7F800000;\n"
	"  @%p2 trap;\n"
	"  ret;\n"
	"}\n"
	".visible .entry exchange(.param .u64 mine, .param .u64 peer, .param .u64 given_up)\n"
	"{\n"
	"  .reg .pred %p<3>; .reg .b32 %r<4>; .reg .b64 %rd<8>;\n"
	"  ld.param.u64 %rd1, [mine];\n"
	"  ld.param.u64 %rd2, [peer];\n"
	"  ld.param.u64 %rd3, [given_up];\n"
	"  cvta.to.global.u64 %rd1, %rd1;\n"
	"  cvta.to.global.u64 %rd2, %rd2;\n"
	"  cvta.to.global.u64 %rd3, %rd3;\n"
	"  mov.u64 %rd4, %globaltimer;\n"
	"  mov.u32 %r1, 1;\n"
	"  st.volatile.global.u32 [%rd1], %r1;\n"
	"  membar.sys;\n"
	"SPIN:\n"
	"  ld.volatile.global.u32 %r2, [%rd2];\n"
	"  setp.ne.u32 %p1, %r2, 0;\n"
	"  @%p1 bra DONE;\n"
	"  mov.u64 %rd5, %globaltimer;\n"
	"  sub.u64 %rd6, %rd5, %rd4;\n"
	"  setp.gt.u64 %p2, %rd6, 5000000000;\n"
	"  @!%p2 bra SPIN;\n"
	"  ld.volatile.global.u32 %r3, [%rd3];\n"
	"  add.u32 %r3, %r3, 1;\n"
	"  st.volatile.global.u32 [%rd3], %r3;\n"
	"DONE:\n"
	"  membar.sys;\n"
	"  ret;\n"
	"}\n";

/* Oldest first, as in bench/load/kernel.c. */
static const char *const ptx_heads[] = {
	".version 6.0\n.target sm_60\n",
	".version 7.0\n.target sm_75\n",
	".version 7.8\n.target sm_90\n",
};

static const struct {
	size_t offset;
	const char *symbol;
} rows[] = {
#define X(member, symbol, params) { offsetof(struct gpu, member), symbol },
	GPU_ROWS(X)
#undef X
};

static void fail(const char *what, const char *why)
{
	fflush(stdout);
	fprintf(stderr, "%s: %s: %s\n", program_invocation_short_name, what, why);
	exit(1);
}

const char *gpu_error_name(CUresult result)
{
	static _Thread_local char number[32];
	const char *name = NULL;

	if (gpu.error_name && gpu.error_name(result, &name) == CUDA_SUCCESS && name)
		return name;
	snprintf(number, sizeof(number), "CUresult %d", (int)result);
	return number;
}

void gpu_check(CUresult result, const char *what)
{
	if (result != CUDA_SUCCESS)
		fail(what, gpu_error_name(result));
}

/* The simulated GPU gives out a function for any name; a real one knows those of its module. */
static void load_kernels(void)
{
	CUmodule module = NULL;
	CUfunction probe;
	CUresult result = CUDA_ERROR_NOT_FOUND;

	for (size_t i = 0; i < sizeof(ptx_heads) / sizeof(ptx_heads[0]); i++) {
		char text[sizeof(ptx_body) + 64];

		snprintf(text, sizeof(text), "%s%s", ptx_heads[i], ptx_body);
		result = gpu.module_load(&module, text);
		if (result == CUDA_SUCCESS)
			break;
	}
	gpu_check(result, "module_load");
	gpu.is_simulated = gpu.module_function(&probe, module, "allot_sim_1us_1b") == CUDA_SUCCESS;
	if (gpu.is_simulated) {
		GPU_DO(module_function, &gpu.burn, module, "allot_sim_100us_132b");
		GPU_DO(module_function, &gpu.exchange, module, "allot_sim_spin_132b");
	} else {
		GPU_DO(module_function, &gpu.burn, module, "burn");
		GPU_DO(module_function, &gpu.exchange, module, "exchange");
	}
}

void gpu_open(uint32_t turns_per_ms)
{
	void *lib = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
	CUcontext ctx;

	if (!lib)
		fail("dlopen", dlerror());
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		void *address = dlsym(lib, rows[i].symbol);

		if (!address)
			fail(rows[i].symbol, "not in this libcuda.so.1");
		memcpy((char *)&gpu + rows[i].offset, &address, sizeof(address));
	}
	gpu.turns_per_ms = turns_per_ms;
	GPU_DO(init, 0);
	GPU_DO(device_get, &gpu.dev, 0);
	GPU_DO(primary_retain, &ctx, gpu.dev);
	GPU_DO(ctx_set, ctx);
	load_kernels();
	if (!gpu.is_simulated && turns_per_ms == 0)
		fail("--iters", "missing; a real GPU's kernel is not named by its cost");
}

/* On the simulated GPU time is the function's name times the blocks: 132 fill the card once. */
void gpu_burn(CUstream stream, uint64_t us)
{
	uint32_t turns = (uint32_t)((uint64_t)gpu.turns_per_ms * us / 1000);
	void *params[] = { &turns };
	unsigned int blocks = BLOCKS;

	if (gpu.is_simulated)
		blocks = (unsigned int)(us * BLOCKS / 100);
	GPU_DO(launch, gpu.burn, blocks, 1, 1, THREADS, 1, 1, 0, stream,
	       gpu.is_simulated ? NULL : params, NULL);
}

void gpu_exchange(CUstream stream, CUdeviceptr mine, CUdeviceptr peer, CUdeviceptr given_up)
{
	void *params[] = { &mine, &peer, &given_up };
	void *simulated[] = { &peer };

	if (gpu.is_simulated)
		GPU_DO(stream_write_value, stream, mine, 1, 0);
	GPU_DO(launch, gpu.exchange, 1, 1, 1, 1, 1, 1, 0, stream,
	       gpu.is_simulated ? simulated : params, NULL);
}
