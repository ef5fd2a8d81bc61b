/* Streams that wait for words in memory, and write them: one by one and in batches. */
#include "driver.cuh"

constexpr size_t BYTES = 16 * MIB;
constexpr int TURNS = 100;

int main(int argc, char **argv)
{
	cudaStream_t first, second;
	CUdeviceptr flag, p;

	begin(argc, argv);
	OK(cudaStreamCreateWithFlags(&first, cudaStreamNonBlocking));
	OK(cudaStreamCreateWithFlags(&second, cudaStreamNonBlocking));
	OK(cudaMalloc((void **)&flag, 64));
	OK(cudaMalloc((void **)&p, BYTES));
	OK(cudaMemset((void *)flag, 0, 64));
	fill((void *)p, BYTES, 6);
	OK(cudaDeviceSynchronize());
	/* By turns: each stream works when the other one has said so. */
	for (int turn = 0; turn < TURNS; turn++) {
		stir((void *)p, BYTES, first);
		OK(DRIVER(cuStreamWriteValue32)(first, flag, 2 * turn + 1, 0));
		OK(DRIVER(cuStreamWaitValue32)(second, flag, 2 * turn + 1, CU_STREAM_WAIT_VALUE_GEQ));
		fill_kernel<<<1, 32, 0, second>>>((uint32_t *)p, 32, (uint32_t)turn);
		stir((void *)p, BYTES / 2, second);
		CUstreamBatchMemOpParams ops[2] = {};
		ops[0].writeValue.operation = CU_STREAM_MEM_OP_WRITE_VALUE_32;
		ops[0].writeValue.address = flag + 32;
		ops[0].writeValue.value = turn;
		ops[1].writeValue.operation = CU_STREAM_MEM_OP_WRITE_VALUE_32;
		ops[1].writeValue.address = flag;
		ops[1].writeValue.value = 2 * turn + 2;
		OK(DRIVER(cuStreamBatchMemOp)(second, 2, ops, 0));
		OK(DRIVER(cuStreamWaitValue32)(first, flag, 2 * turn + 2, CU_STREAM_WAIT_VALUE_GEQ));
	}
	OK(DRIVER(cuStreamWriteValue64)(first, flag + 8, 0x123456789abcdef0, 0));
	OK(DRIVER(cuStreamWaitValue64)(second, flag + 8, 0x123456789abcdef0,
				       CU_STREAM_WAIT_VALUE_EQ));
	OK(cudaStreamSynchronize(first));
	OK(cudaStreamSynchronize(second));
	hold("values");
	take_device((void *)flag, 64);
	take_device((void *)p, BYTES);
	OK(cudaFree((void *)flag));
	OK(cudaFree((void *)p));
	end();
}
