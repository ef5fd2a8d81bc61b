/* Graphs that kernels launch: instantiated for the device, fired by a kernel of another graph. */
#include "sample.cuh"

constexpr size_t BYTES = 16 * MIB;

static __global__ void fire(cudaGraphExec_t exec, int *ret_error)
{
	*ret_error |= (int)cudaGraphLaunch(exec, cudaStreamGraphFireAndForget);
}

static cudaGraphExec_t fired(cudaStream_t stream, uint32_t *p)
{
	cudaGraphExec_t exec;
	cudaGraph_t graph;

	OK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
	stir(p, BYTES, stream);
	OK(cudaStreamEndCapture(stream, &graph));
	cudaError_t error = cudaGraphInstantiate(&exec, graph, cudaGraphInstantiateFlagDeviceLaunch);
	say("instantiated for the device: %s", cudaGetErrorName(error));
	if (error == cudaErrorNotSupported)
		skip("graphs can't be instantiated for the device");
	OK(error);
	OK(cudaGraphDestroy(graph));
	OK(cudaGraphUpload(exec, stream));
	OK(cudaStreamSynchronize(stream));
	return exec;
}

int main(int argc, char **argv)
{
	cudaGraphExec_t target, launcher;
	cudaGraph_t graph;
	cudaStream_t stream;
	uint32_t *p;
	int *error;

	begin(argc, argv);
	OK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
	OK(cudaMalloc(&p, BYTES));
	OK(cudaMalloc(&error, sizeof(*error)));
	OK(cudaMemset(error, 0, sizeof(*error)));
	fill(p, BYTES, 4, stream);
	target = fired(stream, p);
	OK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
	fire<<<1, 1, 0, stream>>>(target, error);
	OK(cudaStreamEndCapture(stream, &graph));
	OK(cudaGraphInstantiate(&launcher, graph, 0));
	OK(cudaGraphDestroy(graph));
	/* What was fired is over before the next launch begins. */
	for (int turn = 0; turn < 20; turn++)
		OK(cudaGraphLaunch(launcher, stream));
	OK(cudaStreamSynchronize(stream));
	hold("device graphs");
	take_device(error, sizeof(*error));
	take_device(p, BYTES);
	OK(cudaGraphExecDestroy(launcher));
	OK(cudaGraphExecDestroy(target));
	OK(cudaFree(p));
	OK(cudaFree(error));
	end();
}
