/* External memory without a graphics interface: what the driver says of the descriptor of its own
 * memory, and, where it takes that, the bytes behind it. */
#include "vmm.cuh"

constexpr size_t BYTES = 64 * MIB;

int main(int argc, char **argv)
{
	CUmemAllocationProp prop = vmm_properties(true);
	cudaExternalMemoryHandleDesc desc = {};
	CUmemGenericAllocationHandle handle;
	cudaExternalMemory_t memory;
	CUdeviceptr at;
	int fd;

	begin(argc, argv);
	OK(cudaFree(nullptr));
	OK(DRIVER(cuMemCreate)(&handle, BYTES, &prop, 0));
	at = vmm_reserve(BYTES);
	vmm_map(at, BYTES, handle);
	fill((void *)at, BYTES, 12);
	OK(cudaDeviceSynchronize());
	OK(DRIVER(cuMemExportToShareableHandle)(&fd, handle,
						CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
	desc.type = cudaExternalMemoryHandleTypeOpaqueFd;
	desc.handle.fd = fd;
	desc.size = BYTES;
	cudaError_t error = cudaImportExternalMemory(&memory, &desc);
	say("cudaImportExternalMemory: %s", cudaGetErrorName(error));
	take(error);
	cudaGetLastError();
	if (error == cudaSuccess) {
		cudaExternalMemoryBufferDesc part = {};
		void *p;

		/* The import owns the descriptor now. */
		part.size = BYTES;
		OK(cudaExternalMemoryGetMappedBuffer(&p, memory, &part));
		stir(p, BYTES);
		hold("imported");
		take_device(p, BYTES);
		OK(cudaFree(p));
		OK(cudaDestroyExternalMemory(memory));
	} else {
		close(fd);
		hold("not imported");
	}
	take_device((void *)at, BYTES);
	OK(DRIVER(cuMemUnmap)(at, BYTES));
	OK(DRIVER(cuMemRelease)(handle));
	hold("released");
	OK(DRIVER(cuMemAddressFree)(at, BYTES));
	end();
}
