/* Memory of the virtual memory API lives as long as a handle or a mapping of it does. */
#include "vmm.cuh"

constexpr size_t BYTES = 64 * MIB;

int main(int argc, char **argv)
{
	CUmemAllocationProp prop = vmm_properties();
	CUmemGenericAllocationHandle handle[3], again, piece[16];
	CUdeviceptr range, elsewhere;

	begin(argc, argv);
	OK(cudaFree(nullptr));
	range = vmm_reserve(3 * BYTES);
	elsewhere = vmm_reserve(BYTES);
	for (int i = 0; i < 3; i++) {
		OK(DRIVER(cuMemCreate)(&handle[i], BYTES, &prop, 0));
		vmm_map(range + i * BYTES, BYTES, handle[i]);
	}
	fill((void *)range, 3 * BYTES, 1);
	hold("mapped");
	take_device((void *)range, 3 * BYTES);

	/* The first one twice at once: one memory at two addresses. */
	vmm_map(elsewhere, BYTES, handle[0]);
	stir((void *)elsewhere, BYTES);
	hold("one at two addresses");
	take_device((void *)range, BYTES);

	/* Moved: unmapped from where it was made, its bytes are still there. */
	OK(DRIVER(cuMemUnmap)(range, BYTES));
	take_device((void *)elsewhere, BYTES);

	/* Released, and still mapped. */
	OK(DRIVER(cuMemRelease)(handle[1]));
	stir((void *)(range + BYTES), BYTES);
	hold("released, still mapped");
	take_device((void *)(range + BYTES), BYTES);

	/* A handle again from the address alone; with it, the mapping's end is not the memory's. */
	OK(DRIVER(cuMemRetainAllocationHandle)(&again, (void *)(range + BYTES + 4096)));
	OK(DRIVER(cuMemUnmap)(range + BYTES, BYTES));
	hold("retained, unmapped");
	vmm_map(range, BYTES, again);
	take_device((void *)range, BYTES);
	OK(DRIVER(cuMemUnmap)(range, BYTES));
	OK(DRIVER(cuMemRelease)(again));

	/* Unmapped first, then released. */
	OK(DRIVER(cuMemUnmap)(range + 2 * BYTES, BYTES));
	OK(DRIVER(cuMemRelease)(handle[2]));
	hold("one is left");
	OK(DRIVER(cuMemRelease)(handle[0]));
	OK(DRIVER(cuMemUnmap)(elsewhere, BYTES));
	hold("none is left");
	over_in_pieces(
		"cuMemCreate",
		[&](int i, size_t bytes) { return DRIVER(cuMemCreate)(&piece[i], bytes, &prop, 0); },
		[&](int i) { OK(DRIVER(cuMemRelease)(piece[i])); });
	OK(DRIVER(cuMemAddressFree)(range, 3 * BYTES));
	OK(DRIVER(cuMemAddressFree)(elsewhere, BYTES));
	end();
}
