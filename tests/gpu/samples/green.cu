/* Green contexts: parts of the card's multiprocessors, by functions that the runtime looks up. */
#include "sample.cuh"

template <typename F> static F looked_up(F, const char *name, unsigned int version)
{
	cudaDriverEntryPointQueryResult found;
	void *address = nullptr;

	OK(cudaGetDriverEntryPointByVersion(name, &address, version, cudaEnableDefault, &found));
	expect(address && found == cudaDriverEntryPointSuccess, name);
	return (F)address;
}

#define LOOK_UP(symbol, version) looked_up(&symbol, #symbol, version)

constexpr size_t BYTES = 32 * MIB;

int main(int argc, char **argv)
{
	CUdevResource all, part[2], rest;
	CUdevResourceDesc description[2];
	CUgreenCtx green[2];
	CUstream stream[2];
	CUcontext context;
	unsigned int groups = 2;
	void *p[2];

	begin(argc, argv);
	OK(cudaFree(nullptr));
	OK(LOOK_UP(cuDeviceGetDevResource, 12040)(0, &all, CU_DEV_RESOURCE_TYPE_SM));
	OK(LOOK_UP(cuDevSmResourceSplitByCount, 12040)(part, &groups, &all, &rest, 0, 16));
	take(groups);
	for (int i = 0; i < 2; i++) {
		take(part[i].sm.smCount);
		OK(LOOK_UP(cuDevResourceGenerateDesc, 12040)(&description[i], &part[i], 1));
		OK(LOOK_UP(cuGreenCtxCreate, 12040)(&green[i], description[i], 0,
						    CU_GREEN_CTX_DEFAULT_STREAM));
		OK(LOOK_UP(cuGreenCtxStreamCreate, 12050)(&stream[i], green[i],
							  CU_STREAM_NON_BLOCKING, 0));
		OK(cudaMalloc(&p[i], BYTES));
		fill(p[i], BYTES, (uint32_t)i, stream[i]);
		for (int turn = 0; turn < 20; turn++)
			stir(p[i], BYTES, stream[i]);
	}
	hold("two parts");
	for (void *q : p)
		take_device(q, BYTES);
	/* A part is a context as well, in which memory can be had. */
	OK(LOOK_UP(cuCtxFromGreenCtx, 12040)(&context, green[0]));
	OK(LOOK_UP(cuCtxPushCurrent, 4000)(context));
	CUdeviceptr in_part, too_much;
	OK(LOOK_UP(cuMemAlloc, 3020)(&in_part, BYTES));
	fill((void *)in_part, BYTES, 9);
	OK(LOOK_UP(cuCtxSynchronize, 2000)());
	hold("memory of a part");
	take_device((void *)in_part, BYTES);
	if (sample.quota_bytes)
		over("cuMemAlloc in a part",
		     LOOK_UP(cuMemAlloc, 3020)(&too_much, 2 * sample.quota_bytes));
	OK(LOOK_UP(cuMemFree, 3020)(in_part));
	OK(LOOK_UP(cuCtxPopCurrent, 4000)(&context));
	for (int i = 0; i < 2; i++) {
		OK(LOOK_UP(cuStreamDestroy, 4000)(stream[i]));
		OK(LOOK_UP(cuGreenCtxDestroy, 12040)(green[i]));
		OK(cudaFree(p[i]));
	}
	hold("parts destroyed");
	end();
}
