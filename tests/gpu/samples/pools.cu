/* Stream-ordered allocation: the default pool, a pool that keeps what it has, trimming, reuse. */
#include "sample.cuh"

constexpr size_t BYTES = 50 * MIB;
constexpr int COUNT = 6;

static cudaMemPool_t new_pool(uint64_t threshold)
{
	cudaMemPoolProps props = {};
	cudaMemPool_t pool;

	props.allocType = cudaMemAllocationTypePinned;
	props.location = { cudaMemLocationTypeDevice, 0 };
	OK(cudaMemPoolCreate(&pool, &props));
	OK(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &threshold));
	return pool;
}

/* Memory freed on one stream is taken by another one, behind an event or not. */
static void reuse(cudaStream_t first, cudaStream_t second, uint32_t *results)
{
	uint32_t *p;
	cudaEvent_t freed;

	OK(cudaEventCreateWithFlags(&freed, cudaEventDisableTiming));
	for (int turn = 0; turn < 50; turn++) {
		size_t bytes = (1 + mix(turn) % 64) * 256 * KIB;
		OK(cudaMallocAsync((void **)&p, bytes, first));
		fill(p, bytes, (uint32_t)turn, first);
		OK(cudaMemcpyAsync(results + 2 * turn, p + bytes / 8, 4, cudaMemcpyDefault, first));
		OK(cudaFreeAsync(p, first));
		if (turn % 2) {
			OK(cudaEventRecord(freed, first));
			OK(cudaStreamWaitEvent(second, freed));
		}
		OK(cudaMallocAsync((void **)&p, bytes, second));
		fill(p, bytes, ~(uint32_t)turn, second);
		OK(cudaMemcpyAsync(results + 2 * turn + 1, p + bytes / 8, 4, cudaMemcpyDefault,
				   second));
		OK(cudaFreeAsync(p, second));
	}
	OK(cudaDeviceSynchronize());
	take_device(results, 400);
	OK(cudaEventDestroy(freed));
}

int main(int argc, char **argv)
{
	cudaMemPool_t own, standard;
	cudaStream_t first, second;
	void *p[COUNT], *piece[16];
	uint32_t *results;

	begin(argc, argv);
	OK(cudaStreamCreateWithFlags(&first, cudaStreamNonBlocking));
	OK(cudaStreamCreateWithFlags(&second, cudaStreamNonBlocking));
	OK(cudaMalloc(&results, 400));
	OK(cudaDeviceGetDefaultMemPool(&standard, 0));
	own = new_pool(UINT64_MAX);
	for (int i = 0; i < COUNT; i++) {
		OK(i % 2 ? cudaMallocFromPoolAsync(&p[i], BYTES, own, first)
			 : cudaMallocAsync(&p[i], BYTES, first));
		fill(p[i], BYTES, (uint32_t)i, first);
	}
	hold("two pools");
	for (void *q : p)
		take_device(q, BYTES);
	for (void *q : p)
		OK(cudaFreeAsync(q, first));
	OK(cudaStreamSynchronize(first));
	hold("freed, one pool keeps");
	OK(cudaMemPoolTrimTo(own, 64 * MIB));
	hold("trimmed to a part");
	OK(cudaMemPoolTrimTo(own, 0));
	hold("trimmed");
	reuse(first, second, results);
	over_in_pieces(
		"cudaMallocAsync",
		[&](int i, size_t bytes) { return cudaMallocAsync(&piece[i], bytes, first); },
		[&](int i) { OK(cudaFreeAsync(piece[i], first)); });
	OK(cudaStreamSynchronize(first));
	OK(cudaMemPoolTrimTo(standard, 0));
	over_in_pieces(
		"cudaMallocFromPoolAsync",
		[&](int i, size_t bytes) {
			return cudaMallocFromPoolAsync(&piece[i], bytes, own, second);
		},
		[&](int i) { OK(cudaFreeAsync(piece[i], second)); });
	OK(cudaStreamSynchronize(second));
	OK(cudaMemPoolDestroy(own));
	hold("destroyed");
	OK(cudaFree(results));
	end();
}
