/* Pinned memory of the host, allocated, mapped or registered, is not the card's: the quota does not
 * bound it. */
#include "sample.cuh"

#include <sys/mman.h>

constexpr size_t BYTES = 128 * MIB;

int main(int argc, char **argv)
{
	void *plain, *mapped, *mine, *on_card, *on_card_mine, *card, *large;

	begin(argc, argv);
	OK(cudaMallocHost(&plain, BYTES));
	OK(cudaHostAlloc(&mapped, BYTES, cudaHostAllocMapped | cudaHostAllocPortable));
	mine = mmap(nullptr, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	expect(mine != MAP_FAILED, "memory of the host");
	OK(cudaHostRegister(mine, BYTES, cudaHostRegisterMapped));
	OK(cudaHostGetDevicePointer(&on_card, mapped, 0));
	OK(cudaHostGetDevicePointer(&on_card_mine, mine, 0));
	OK(cudaMalloc(&card, BYTES));
	fill(on_card, BYTES, 8);
	OK(cudaMemcpyAsync(card, mapped, BYTES, cudaMemcpyDefault));
	stir(card, BYTES);
	OK(cudaMemcpyAsync(mine, card, BYTES, cudaMemcpyDefault));
	stir(on_card_mine, BYTES);
	OK(cudaMemcpyAsync(plain, mine, BYTES, cudaMemcpyDefault));
	hold("pinned");
	take(plain, BYTES);
	take(mapped, BYTES);
	if (sample.quota_bytes) {
		OK(cudaMallocHost(&large, sample.quota_bytes + BYTES));
		hold("more than the quota pinned");
		OK(cudaFreeHost(large));
		over("cudaMalloc beside it", cudaMalloc(&large, 2 * sample.quota_bytes));
	}
	OK(cudaHostUnregister(mine));
	OK(cudaFreeHost(mapped));
	OK(cudaFreeHost(plain));
	OK(cudaFree(card));
	end();
}
