/*
 * Work that the GPU starts by itself: a graph that launches itself again and again from a kernel, and
 * kernels that launch kernels. How much of it gets done in a second, for tests/gpu/checks/device_work.py:
 *     device_rate graph|kernel SECONDS
 * The host launches once for each ROUNDS pieces of work, of PIECE_NS each.
 */
#include "sample.cuh"

#include <chrono>

constexpr uint64_t PIECE_NS = 500000;
constexpr int ROUNDS = 40;

/* On every processor, for a time and not an amount of work: so it takes as long beside others. */
static __global__ void piece()
{
	uint64_t begin, now;

	asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(begin));
	do
		asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
	while (now - begin < PIECE_NS);
}

static __global__ void again(int *left, int *done)
{
	*done += 1;
	if (--*left > 0)
		cudaGraphLaunch(cudaGetCurrentGraphExec(), cudaStreamGraphTailLaunch);
}

static __global__ void parent(int *left, int *done)
{
	*done += 1;
	piece<<<132, 32, 0, cudaStreamTailLaunch>>>();
	if (--*left > 0)
		parent<<<1, 1, 0, cudaStreamTailLaunch>>>(left, done);
}

static cudaGraphExec_t make_graph(cudaStream_t stream, int *left, int *done)
{
	cudaGraphExec_t exec;
	cudaGraph_t graph;

	OK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
	piece<<<132, 32, 0, stream>>>();
	again<<<1, 1, 0, stream>>>(left, done);
	OK(cudaStreamEndCapture(stream, &graph));
	OK(cudaGraphInstantiate(&exec, graph, cudaGraphInstantiateFlagDeviceLaunch));
	OK(cudaGraphUpload(exec, stream));
	return exec;
}

int main(int argc, char **argv)
{
	using clock = std::chrono::steady_clock;
	const bool is_graph = argc > 1 && strcmp(argv[1], "graph") == 0;
	const double seconds = argc > 2 ? atof(argv[2]) : 1;
	const int rounds = ROUNDS;
	cudaStream_t stream;
	int *left, *done, total = 0;

	OK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
	OK(cudaMalloc(&left, sizeof(int)));
	OK(cudaMalloc(&done, sizeof(int)));
	OK(cudaMemset(done, 0, sizeof(int)));
	cudaGraphExec_t exec = is_graph ? make_graph(stream, left, done) : nullptr;
	OK(cudaDeviceSynchronize());

	/* The first second is left out: what a tenant saved up before is spent then. */
	auto begin = clock::now();
	double elapsed_s;
	bool is_warm = false;
	do {
		OK(cudaMemcpyAsync(left, &rounds, sizeof(rounds), cudaMemcpyHostToDevice, stream));
		if (is_graph)
			OK(cudaGraphLaunch(exec, stream));
		else
			parent<<<1, 1, 0, stream>>>(left, done);
		OK(cudaGetLastError());
		OK(cudaStreamSynchronize(stream));
		elapsed_s = std::chrono::duration<double>(clock::now() - begin).count();
		if (!is_warm && elapsed_s > 1) {
			is_warm = true;
			begin = clock::now();
			elapsed_s = 0;
			OK(cudaMemsetAsync(done, 0, sizeof(int), stream));
		}
	} while (elapsed_s < seconds);
	OK(cudaMemcpy(&total, done, sizeof(total), cudaMemcpyDeviceToHost));
	say("{\"at\": \"end\", \"done\": %d, \"seconds\": %.4f}", total, elapsed_s);
}
