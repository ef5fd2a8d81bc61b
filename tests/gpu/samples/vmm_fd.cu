/* Memory of the virtual memory API, exported as a descriptor; its importer keeps it longer. */
#include "processes.cuh"
#include "vmm.cuh"

constexpr size_t BYTES = 128 * MIB;

static void importer(int socket)
{
	CUmemGenericAllocationHandle handle;
	CUdeviceptr at;

	OK(cudaFree(nullptr));
	int fd = receive_fd(socket);
	OK(DRIVER(cuMemImportFromShareableHandle)(&handle, (void *)(intptr_t)fd,
						  CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR));
	close(fd);
	at = vmm_reserve(BYTES);
	vmm_map(at, BYTES, handle);
	stir((void *)at, BYTES);
	OK(cudaDeviceSynchronize());
	send_value(socket, 'm');
	/* The maker has let go of it by now. */
	receive_value<char>(socket);
	stir((void *)at, BYTES);
	send_value(socket, checksum_of_device((void *)at, BYTES));
	receive_value<char>(socket);
	OK(DRIVER(cuMemUnmap)(at, BYTES));
	OK(DRIVER(cuMemRelease)(handle));
	OK(DRIVER(cuMemAddressFree)(at, BYTES));
	send_value(socket, 'u');
	receive_value<char>(socket);
}

int main(int argc, char **argv)
{
	CUmemAllocationProp prop = vmm_properties(true);
	CUmemGenericAllocationHandle handle, piece[16];
	int fd, piece_fd[16];
	CUdeviceptr at;

	begin(argc, argv);
	second other = start_second(importer);
	OK(cudaFree(nullptr));
	OK(DRIVER(cuMemCreate)(&handle, BYTES, &prop, 0));
	at = vmm_reserve(BYTES);
	vmm_map(at, BYTES, handle);
	fill((void *)at, BYTES, 5);
	OK(cudaDeviceSynchronize());
	OK(DRIVER(cuMemExportToShareableHandle)(&fd, handle,
						CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
	send_fd(other.socket, fd);
	close(fd);
	receive_value<char>(other.socket);
	hold("mapped by both", { other.pid });
	take_device((void *)at, BYTES);
	OK(DRIVER(cuMemUnmap)(at, BYTES));
	OK(DRIVER(cuMemRelease)(handle));
	hold("mapped by the importer alone", { other.pid });
	send_value(other.socket, 'g');
	take(receive_value<uint64_t>(other.socket));
	send_value(other.socket, 'u');
	receive_value<char>(other.socket);
	hold("mapped by none", { other.pid });
	send_value(other.socket, 'e');
	end_second(other);
	over_in_pieces(
		"cuMemCreate, exported",
		[&](int i, size_t bytes) {
			CUresult result = DRIVER(cuMemCreate)(&piece[i], bytes, &prop, 0);
			if (result == CUDA_SUCCESS)
				OK(DRIVER(cuMemExportToShareableHandle)(
					&piece_fd[i], piece[i],
					CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
			return result;
		},
		[&](int i) {
			close(piece_fd[i]);
			OK(DRIVER(cuMemRelease)(piece[i]));
		});
	OK(DRIVER(cuMemAddressFree)(at, BYTES));
	end();
}
