#include "load.h"

#include "gpu.h"
#include "stage.h"

static void launch_timed(struct load_figures *figures, CUfunction kernel, CUstream stream)
{
	uint64_t begin = now_ns();

	gpu_launch(kernel, stream);
	uint64_t took = now_ns() - begin;
	if (took > atomic_load(&figures->longest_ns))
		atomic_store(&figures->longest_ns, took);
	atomic_fetch_add(&figures->launches, 1);
}

static void ask_too_much(struct load_figures *figures, uint64_t bytes)
{
	CUdeviceptr ptr;
	CUresult result = cuMemAlloc_v2(&ptr, bytes);

	if (result == CUDA_SUCCESS) {
		atomic_fetch_add(&figures->over_quota, 1);
		GPU_DO(cuMemFree_v2(ptr));
	} else if (result == CUDA_ERROR_OUT_OF_MEMORY) {
		atomic_fetch_add(&figures->refused, 1);
	} else {
		gpu_check(result, "cuMemAlloc");
	}
}

int load_run(struct load_figures *figures, const struct load_options *options)
{
	CUdeviceptr held;

	gpu_start();
	CUfunction kernel = gpu_kernel(options->kernel_us);
	CUstream stream = gpu_stream();
	if (options->hold_bytes)
		GPU_DO(cuMemAlloc_v2(&held, options->hold_bytes));
	atomic_store(&figures->runs, true);
	while (!atomic_load(&figures->stop)) {
		for (unsigned i = 0; i < options->batch; i++)
			launch_timed(figures, kernel, stream);
		if (options->too_much)
			ask_too_much(figures, options->too_much);
		GPU_DO(cuStreamSynchronize(stream));
	}
	return 0;
}
