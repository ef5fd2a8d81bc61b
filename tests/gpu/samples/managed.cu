/* Managed memory: touched by both sides, advised, prefetched to the card and back. */
#include "sample.cuh"

constexpr size_t BYTES = 64 * MIB;

int main(int argc, char **argv)
{
	const cudaMemLocation card = { cudaMemLocationTypeDevice, 0 };
	const cudaMemLocation host = { cudaMemLocationTypeHost, 0 };
	void *piece[16];
	uint32_t *p;

	begin(argc, argv);
	OK(cudaMallocManaged(&p, BYTES));
	for (size_t i = 0; i < BYTES / 4; i++)
		p[i] = (uint32_t)i;
	OK(cudaMemAdvise(p, BYTES, cudaMemAdviseSetPreferredLocation, card));
	OK(cudaMemAdvise(p, BYTES, cudaMemAdviseSetAccessedBy, card));
	stir(p, BYTES);
	OK(cudaMemPrefetchAsync(p, BYTES, card, 0));
	stir(p, BYTES);
	OK(cudaDeviceSynchronize());
	hold("on the card", {}, BYTES);
	OK(cudaMemPrefetchAsync(p, BYTES, host, 0));
	OK(cudaDeviceSynchronize());
	take(p, BYTES);
	OK(cudaMemAdvise(p, BYTES, cudaMemAdviseUnsetPreferredLocation, card));
	p[0] += 1;
	stir(p, BYTES);
	OK(cudaDeviceSynchronize());
	take(p, BYTES);
	OK(cudaFree(p));
	/* Charged in full from the call on, and not on the card before it is touched. */
	over_in_pieces(
		"cudaMallocManaged",
		[&](int i, size_t bytes) { return cudaMallocManaged(&piece[i], bytes); },
		[&](int i) { OK(cudaFree(piece[i])); }, false);
	end();
}
