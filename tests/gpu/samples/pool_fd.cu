/* A pool exported as a file descriptor, and one of its allocations used by another process. */
#include "processes.cuh"

constexpr size_t BYTES = 96 * MIB;

static void importer(int socket)
{
	cudaMemPoolPtrExportData data;
	cudaMemPool_t pool;
	cudaStream_t stream;
	void *p;

	OK(cudaFree(nullptr));
	OK(cudaStreamCreate(&stream));
	int fd = receive_fd(socket);
	OK(cudaMemPoolImportFromShareableHandle(&pool, (void *)(intptr_t)fd,
						cudaMemHandleTypePosixFileDescriptor, 0));
	close(fd);
	data = receive_value<cudaMemPoolPtrExportData>(socket);
	OK(cudaMemPoolImportPointer(&p, pool, &data));
	stir(p, BYTES, stream);
	OK(cudaStreamSynchronize(stream));
	send_value(socket, checksum_of_device(p, BYTES));
	/* An imported allocation is freed by its importers before its maker frees it. */
	receive_value<char>(socket);
	OK(cudaFreeAsync(p, stream));
	OK(cudaStreamSynchronize(stream));
	send_value(socket, 'f');
	receive_value<char>(socket);
	OK(cudaMemPoolDestroy(pool));
}

int main(int argc, char **argv)
{
	uint64_t threshold = UINT64_MAX;
	cudaMemPoolPtrExportData data;
	cudaMemPoolProps props = {};
	cudaMemPool_t pool;
	cudaStream_t stream;
	void *p, *piece[16];
	int fd;

	begin(argc, argv);
	second other = start_second(importer);
	OK(cudaStreamCreate(&stream));
	props.allocType = cudaMemAllocationTypePinned;
	props.handleTypes = cudaMemHandleTypePosixFileDescriptor;
	props.location = { cudaMemLocationTypeDevice, 0 };
	OK(cudaMemPoolCreate(&pool, &props));
	OK(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &threshold));
	OK(cudaMallocFromPoolAsync(&p, BYTES, pool, stream));
	fill(p, BYTES, 3, stream);
	OK(cudaStreamSynchronize(stream));
	OK(cudaMemPoolExportToShareableHandle(&fd, pool, cudaMemHandleTypePosixFileDescriptor, 0));
	OK(cudaMemPoolExportPointer(&data, p));
	send_fd(other.socket, fd);
	close(fd);
	send_value(other.socket, data);
	take(receive_value<uint64_t>(other.socket));
	hold("imported", { other.pid });
	take_device(p, BYTES);
	send_value(other.socket, 'f');
	receive_value<char>(other.socket);
	OK(cudaFreeAsync(p, stream));
	OK(cudaStreamSynchronize(stream));
	hold("freed by both", { other.pid });
	send_value(other.socket, 'e');
	end_second(other);
	over_in_pieces(
		"cudaMallocFromPoolAsync, a pool that is exported",
		[&](int i, size_t bytes) {
			return cudaMallocFromPoolAsync(&piece[i], bytes, pool, stream);
		},
		[&](int i) { OK(cudaFreeAsync(piece[i], stream)); });
	OK(cudaStreamSynchronize(stream));
	OK(cudaMemPoolDestroy(pool));
	OK(cudaStreamDestroy(stream));
	end();
}
