/* Copies in batches: ranges of bytes, and boxes in memory and arrays. */
#include "sample.cuh"

constexpr size_t BYTES = 64 * MIB;
constexpr int COUNT = 200;

/* Pieces of unequal sizes, each to where the next one came from. */
static void copy_ranges(char *from, char *to, cudaStream_t stream)
{
	const size_t stride = BYTES / COUNT / 256 * 256;
	cudaMemcpyAttributes how = {};
	std::vector<const void *> sources;
	std::vector<void *> targets;
	std::vector<size_t> sizes;
	size_t first = 0;

	for (int i = 0; i < COUNT; i++) {
		sources.push_back(from + i * stride);
		targets.push_back(to + (i + 1) % COUNT * stride);
		sizes.push_back(1 + mix((uint32_t)i) % stride);
	}
	how.srcAccessOrder = cudaMemcpySrcAccessOrderStream;
	OK(cudaMemcpyBatchAsync(targets.data(), sources.data(), sizes.data(), COUNT, &how, &first, 1,
				stream));
}

/* Into an array and out of it, turned by a quarter of its depth. */
static void copy_boxes(char *from, char *to, cudaStream_t stream)
{
	const size_t side = 128, quarter = side / 4, slice = side * side * 4;
	cudaChannelFormatDesc format = cudaCreateChannelDesc<unsigned int>();
	std::vector<cudaMemcpy3DBatchOp> in(4), out(4);
	cudaArray_t array;

	OK(cudaMalloc3DArray(&array, &format, make_cudaExtent(side, side, side)));
	for (size_t i = 0; i < 4; i++) {
		cudaMemcpy3DOperand memory = {}, box = {};

		memory.type = cudaMemcpyOperandTypePointer;
		memory.op.ptr.ptr = from + i * quarter * slice;
		box.type = cudaMemcpyOperandTypeArray;
		box.op.array.array = array;
		box.op.array.offset.z = i * quarter;
		in[i].src = memory;
		in[i].dst = box;
		memory.op.ptr.ptr = to + (i + 1) % 4 * quarter * slice;
		out[i].src = box;
		out[i].dst = memory;
		in[i].extent = out[i].extent = make_cudaExtent(side, side, quarter);
		in[i].srcAccessOrder = out[i].srcAccessOrder = cudaMemcpySrcAccessOrderStream;
	}
	OK(cudaMemcpy3DBatchAsync(4, in.data(), 0, stream));
	OK(cudaMemcpy3DBatchAsync(4, out.data(), 0, stream));
	OK(cudaStreamSynchronize(stream));
	OK(cudaFreeArray(array));
}

int main(int argc, char **argv)
{
	cudaStream_t stream;
	char *a, *b;

	begin(argc, argv);
	OK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
	OK(cudaMalloc(&a, BYTES));
	OK(cudaMalloc(&b, BYTES));
	OK(cudaMemsetAsync(b, 0, BYTES, stream));
	fill(a, BYTES, 2, stream);
	for (int turn = 0; turn < 5; turn++) {
		copy_ranges(a, b, stream);
		stir(b, BYTES, stream);
		copy_ranges(b, a, stream);
	}
	OK(cudaStreamSynchronize(stream));
	take_device(a, BYTES);
	copy_boxes(a, b, stream);
	take_device(b, BYTES);
	hold("batches");
	OK(cudaFree(a));
	OK(cudaFree(b));
	end();
}
