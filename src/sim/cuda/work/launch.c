#include "sim/cuda/sim.h"

static CUresult launch(CUfunction f, uint64_t blocks, uint64_t threads, CUstream handle, bool ptds,
		       void **params)
{
	struct sim_step step = { .kind = STEP_KERNEL, .blocks = blocks, .threads = threads };
	CUstream stream;

	SIM_TRY(sim_stream(handle, ptds, &stream));
	SIM_FAIL_IF(!f || f->magic != MAGIC_FUNCTION, CUDA_ERROR_INVALID_HANDLE);
	SIM_FAIL_IF(!blocks || !threads || threads > 1024, CUDA_ERROR_INVALID_VALUE);
	step.ns = sim_kernel_ns(f, stream->ctx->dev, blocks);
	if (f->spins) {
		step.kind = STEP_SPIN;
		/* A spinning kernel without an address to watch spins until its process ends. */
		step.addr = params && params[0] ? *(uint64_t *)params[0] : UINT64_MAX - 8;
		if (step.addr == UINT64_MAX - 8 || !step.addr)
			step.kind = STEP_KERNEL, step.ns = UINT64_MAX / 4;
	}
	return sim_submit(stream, &step);
}

SIM_TWINS(cuLaunchKernel, _ptsz,
	  (CUfunction f, unsigned int gx, unsigned int gy, unsigned int gz, unsigned int bx,
	   unsigned int by, unsigned int bz, unsigned int shared_bytes, CUstream stream,
	   void **params, void **extra),
	  return launch(f, (uint64_t)gx *gy *gz, (uint64_t)bx *by *bz, stream, ptds, params);)

SIM_TWINS(cuLaunchKernelEx, _ptsz,
	  (const CUlaunchConfig *config, CUfunction f, void **params, void **extra),
	  if (!config) return CUDA_ERROR_INVALID_VALUE;
	  return launch(f, (uint64_t)config->gridDimX * config->gridDimY * config->gridDimZ,
			(uint64_t)config->blockDimX * config->blockDimY * config->blockDimZ,
			config->hStream, ptds, params);)

SIM_TWINS(cuLaunchCooperativeKernel, _ptsz,
	  (CUfunction f, unsigned int gx, unsigned int gy, unsigned int gz, unsigned int bx,
	   unsigned int by, unsigned int bz, unsigned int shared_bytes, CUstream stream,
	   void **params),
	  return launch(f, (uint64_t)gx *gy *gz, (uint64_t)bx *by *bz, stream, ptds, params);)

static CUresult host_step(CUstream handle, bool ptds, enum sim_step_kind kind, void *fn, void *data)
{
	struct sim_step step = { .kind = kind, .fn = fn, .data = data, .stream = handle };
	CUstream stream;

	SIM_TRY(sim_stream(handle, ptds, &stream));
	return fn ? sim_submit(stream, &step) : CUDA_ERROR_INVALID_VALUE;
}

SIM_TWINS(cuLaunchHostFunc, _ptsz, (CUstream stream, CUhostFn fn, void *data),
	  return host_step(stream, ptds, STEP_HOST_FUNC, (void *)fn, data);)

SIM_TWINS(cuStreamAddCallback, _ptsz,
	  (CUstream stream, CUstreamCallback callback, void *data, unsigned int flags),
	  return host_step(stream, ptds, STEP_CALLBACK, (void *)callback, data);)

static CUresult value_step(CUstream handle, bool ptds, enum sim_step_kind kind, CUdeviceptr addr,
			   uint64_t value, unsigned int flags)
{
	struct sim_step step = { .kind = kind, .addr = addr, .value = value, .flags = flags };
	CUstream stream;

	SIM_TRY(sim_stream(handle, ptds, &stream));
	SIM_FAIL_IF(!addr || addr % (kind == STEP_WAIT64 || kind == STEP_WRITE64 ? 8 : 4),
		    CUDA_ERROR_INVALID_VALUE);
	return sim_submit(stream, &step);
}

SIM_TWINS(cuStreamWaitValue32_v2, _ptsz,
	  (CUstream stream, CUdeviceptr addr, cuuint32_t value, unsigned int flags),
	  return value_step(stream, ptds, STEP_WAIT32, addr, value, flags);)
SIM_TWINS(cuStreamWriteValue32_v2, _ptsz,
	  (CUstream stream, CUdeviceptr addr, cuuint32_t value, unsigned int flags),
	  return value_step(stream, ptds, STEP_WRITE32, addr, value, flags);)
SIM_TWINS(cuStreamWaitValue64_v2, _ptsz,
	  (CUstream stream, CUdeviceptr addr, cuuint64_t value, unsigned int flags),
	  return value_step(stream, ptds, STEP_WAIT64, addr, value, flags);)
SIM_TWINS(cuStreamWriteValue64_v2, _ptsz,
	  (CUstream stream, CUdeviceptr addr, cuuint64_t value, unsigned int flags),
	  return value_step(stream, ptds, STEP_WRITE64, addr, value, flags);)

static CUresult batch(CUstream stream, bool ptds, unsigned int n, CUstreamBatchMemOpParams *ops)
{
	CUresult r = CUDA_SUCCESS;

	for (unsigned int i = 0; i < n && r == CUDA_SUCCESS; i++) {
		static const enum sim_step_kind kinds[] = { 0, STEP_WAIT32, STEP_WRITE32,
							    0, STEP_WAIT64, STEP_WRITE64 };
		int op = ops[i].operation;

		/* Flush and barrier do nothing, because the simulation never reorders work. */
		if (op == 3 || op == 6)
			continue;
		SIM_FAIL_IF(op < 1 || op > 5, CUDA_ERROR_INVALID_VALUE);
		r = value_step(stream, ptds, kinds[op], ops[i].value.address,
			       op < 3 ? (uint32_t)ops[i].value.value : ops[i].value.value,
			       ops[i].value.flags);
	}
	return r;
}

SIM_TWINS(cuStreamBatchMemOp_v2, _ptsz,
	  (CUstream stream, unsigned int n, CUstreamBatchMemOpParams *ops, unsigned int flags),
	  return ops ? batch(stream, ptds, n, ops) : CUDA_ERROR_INVALID_VALUE;)
