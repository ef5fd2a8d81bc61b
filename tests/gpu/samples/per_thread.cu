/* Built with --default-stream per-thread: the default stream of each thread is its own. */
#include "sample.cuh"

#include <thread>

constexpr size_t BYTES = 16 * MIB;
constexpr int THREADS = 4;

static void work(int index, uint64_t *ret_digest)
{
	void *p, *q;

	OK(cudaMalloc(&p, BYTES));
	fill(p, BYTES, (uint32_t)index);
	for (int turn = 0; turn < 50; turn++) {
		OK(cudaMallocAsync(&q, BYTES, 0));
		OK(cudaMemcpyAsync(q, p, BYTES, cudaMemcpyDeviceToDevice));
		stir(q, BYTES);
		OK(cudaMemcpyAsync(p, q, BYTES, cudaMemcpyDeviceToDevice));
		OK(cudaFreeAsync(q, 0));
	}
	OK(cudaStreamSynchronize(0));
	*ret_digest = checksum_of_device(p, BYTES);
	OK(cudaFree(p));
}

int main(int argc, char **argv)
{
	std::vector<std::thread> threads;
	uint64_t digest[THREADS];
	void *p[16], *piece[16];

	begin(argc, argv);
	for (int i = 0; i < THREADS; i++)
		threads.emplace_back(work, i, &digest[i]);
	for (std::thread &thread : threads)
		thread.join();
	take(digest, sizeof(digest));
	for (int i = 0; i < 4; i++)
		OK(cudaMallocAsync(&p[i], BYTES, 0));
	hold("after the threads");
	for (int i = 0; i < 4; i++)
		OK(cudaFreeAsync(p[i], 0));
	over_in_pieces(
		"cudaMallocAsync on a thread's stream",
		[&](int i, size_t bytes) { return cudaMallocAsync(&piece[i], bytes, 0); },
		[&](int i) { OK(cudaFreeAsync(piece[i], 0)); });
	end();
}
