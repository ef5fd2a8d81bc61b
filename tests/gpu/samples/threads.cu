/* Threads with a stream each in one context, then threads with a context each. */
#include "driver.cuh"

#include <thread>

constexpr size_t BYTES = 16 * MIB;
constexpr int THREADS = 8, CONTEXTS = 4;

static void work_in_stream(int index, uint64_t *ret_digest)
{
	cudaStream_t stream;
	void *p;

	OK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
	for (int turn = 0; turn < 20; turn++) {
		OK(cudaMalloc(&p, BYTES));
		fill(p, BYTES, (uint32_t)(index * 100 + turn), stream);
		stir(p, BYTES, stream);
		OK(cudaStreamSynchronize(stream));
		if (turn == 19)
			*ret_digest = checksum_of_device(p, BYTES);
		OK(cudaFree(p));
	}
	OK(cudaStreamDestroy(stream));
}

/* The context stays, with its memory in it. */
static void work_in_context(int index, CUcontext *ret_context, uint64_t *ret_digest)
{
	CUcontext context;
	CUdeviceptr p;

	OK(DRIVER(cuCtxCreate)(&context, nullptr, 0, 0));
	OK(DRIVER(cuMemAlloc)(&p, BYTES));
	fill((void *)p, BYTES, (uint32_t)index);
	for (int turn = 0; turn < 20; turn++)
		stir((void *)p, BYTES);
	OK(DRIVER(cuCtxSynchronize)());
	*ret_digest = checksum_of_device((void *)p, BYTES);
	*ret_context = context;
	OK(DRIVER(cuCtxPopCurrent)(&context));
}

int main(int argc, char **argv)
{
	std::vector<std::thread> threads;
	CUcontext context[CONTEXTS], piece[16], popped;
	uint64_t digest[THREADS + CONTEXTS];

	begin(argc, argv);
	OK(cudaFree(nullptr));
	for (int i = 0; i < THREADS; i++)
		threads.emplace_back(work_in_stream, i, &digest[i]);
	for (std::thread &thread : threads)
		thread.join();
	threads.clear();
	hold("after the streams");
	for (int i = 0; i < CONTEXTS; i++)
		threads.emplace_back(work_in_context, i, &context[i], &digest[THREADS + i]);
	for (std::thread &thread : threads)
		thread.join();
	take(digest, sizeof(digest));
	hold("contexts");
	for (CUcontext one : context)
		OK(DRIVER(cuCtxDestroy)(one));
	hold("contexts destroyed");
	if (sample.quota_bytes) {
		CUresult result = CUDA_SUCCESS;
		int count = 0;

		while (count < 16) {
			result = DRIVER(cuCtxCreate)(&piece[count], nullptr, 0, 0);
			if (result != CUDA_SUCCESS)
				break;
			OK(DRIVER(cuCtxPopCurrent)(&popped));
			count++;
		}
		over("cuCtxCreate, till one is refused", result);
		hold("contexts, full");
		while (count > 0)
			OK(DRIVER(cuCtxDestroy)(piece[--count]));
	}
	end();
}
