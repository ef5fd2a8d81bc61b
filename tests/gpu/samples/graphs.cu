/* Graphs with memory nodes: captured, built by hand, kept beyond a launch, trimmed. */
#include "sample.cuh"

constexpr size_t BYTES = 64 * MIB;

static cudaGraphExec_t captured(cudaStream_t stream, uint32_t *out)
{
	cudaGraphExec_t exec;
	cudaGraph_t graph;
	void *a, *b;

	OK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
	OK(cudaMallocAsync(&a, BYTES, stream));
	OK(cudaMallocAsync(&b, BYTES, stream));
	fill(a, BYTES, 11, stream);
	OK(cudaMemcpyAsync(b, a, BYTES, cudaMemcpyDeviceToDevice, stream));
	stir(b, BYTES, stream);
	OK(cudaMemcpyAsync(out, b, 4096, cudaMemcpyDeviceToDevice, stream));
	OK(cudaFreeAsync(a, stream));
	OK(cudaFreeAsync(b, stream));
	OK(cudaStreamEndCapture(stream, &graph));
	OK(cudaGraphInstantiate(&exec, graph, 0));
	OK(cudaGraphDestroy(graph));
	return exec;
}

/* Allocates `bytes`, fills them; without a node that frees, they stay until somebody does. */
static cudaError_t built(size_t bytes, bool is_freed, cudaGraphExec_t *ret_exec, void **ret_p)
{
	cudaMemAllocNodeParams memory = {};
	cudaMemsetParams set = {};
	cudaGraphNode_t made, filled, freed;
	cudaGraph_t graph;
	cudaError_t error;

	memory.poolProps.allocType = cudaMemAllocationTypePinned;
	memory.poolProps.location = { cudaMemLocationTypeDevice, 0 };
	memory.bytesize = bytes;
	OK(cudaGraphCreate(&graph, 0));
	error = cudaGraphAddMemAllocNode(&made, graph, nullptr, 0, &memory);
	if (error == cudaSuccess) {
		set.dst = memory.dptr;
		set.value = 0x5a;
		set.elementSize = 1;
		set.width = bytes;
		set.height = 1;
		OK(cudaGraphAddMemsetNode(&filled, graph, &made, 1, &set));
		if (is_freed)
			OK(cudaGraphAddMemFreeNode(&freed, graph, &filled, 1, memory.dptr));
		error = cudaGraphInstantiate(ret_exec, graph, 0);
		*ret_p = memory.dptr;
	}
	OK(cudaGraphDestroy(graph));
	return error;
}

int main(int argc, char **argv)
{
	cudaGraphExec_t first, second, kept, piece_exec[16];
	cudaStream_t stream;
	void *p, *piece[16];
	uint32_t *out;

	begin(argc, argv);
	OK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
	OK(cudaMalloc(&out, 4096));
	first = captured(stream, out);
	OK(built(BYTES, true, &second, &p));
	for (int turn = 0; turn < 5; turn++) {
		OK(cudaGraphLaunch(first, stream));
		OK(cudaGraphLaunch(second, stream));
		OK(cudaStreamSynchronize(stream));
		take_device(out, 4096);
	}
	hold("launched");
	OK(built(BYTES, false, &kept, &p));
	OK(cudaGraphUpload(kept, stream));
	OK(cudaGraphLaunch(kept, stream));
	OK(cudaStreamSynchronize(stream));
	stir(p, BYTES, stream);
	OK(cudaStreamSynchronize(stream));
	hold("kept beyond the launch");
	take_device(p, BYTES);
	OK(cudaFreeAsync(p, stream));
	OK(cudaStreamSynchronize(stream));
	OK(cudaGraphExecDestroy(first));
	OK(cudaGraphExecDestroy(second));
	OK(cudaGraphExecDestroy(kept));
	OK(cudaDeviceGraphMemTrim(0));
	hold("trimmed");
	over_in_pieces(
		"a graph's memory",
		[&](int i, size_t bytes) {
			cudaError_t error = built(bytes, false, &piece_exec[i], &piece[i]);
			if (error != cudaSuccess)
				return error;
			error = cudaGraphLaunch(piece_exec[i], stream);
			if (error != cudaSuccess)
				OK(cudaGraphExecDestroy(piece_exec[i]));
			return error;
		},
		[&](int i) {
			OK(cudaFreeAsync(piece[i], stream));
			OK(cudaStreamSynchronize(stream));
			OK(cudaGraphExecDestroy(piece_exec[i]));
		});
	OK(cudaDeviceGraphMemTrim(0));
	hold("trimmed again");
	OK(cudaFree(out));
	end();
}
