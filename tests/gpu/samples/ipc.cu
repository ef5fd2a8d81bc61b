/* cudaIpc: memory of one process opened by two others, and an event that orders their work. */
#include "processes.cuh"

constexpr size_t BYTES = 64 * MIB;
constexpr int OTHERS = 2;

struct offer {
	cudaIpcMemHandle_t memory;
	cudaIpcEventHandle_t event;
};

/* Each stirs a part of its own, after what the maker's event stands behind. */
static void importer(int socket, int index)
{
	const size_t part = BYTES / OTHERS;
	offer given = receive_value<offer>(socket);
	cudaEvent_t event;
	char *memory;

	OK(cudaIpcOpenMemHandle((void **)&memory, given.memory, cudaIpcMemLazyEnablePeerAccess));
	OK(cudaIpcOpenEventHandle(&event, given.event));
	OK(cudaStreamWaitEvent(0, event));
	stir(memory + index * part, part);
	OK(cudaDeviceSynchronize());
	send_value(socket, 'o');
	receive_value<char>(socket);
	OK(cudaIpcCloseMemHandle(memory));
	OK(cudaEventDestroy(event));
	send_value(socket, 'c');
	/* It lives on, with a context and nothing else, until the maker has looked. */
	receive_value<char>(socket);
}

int main(int argc, char **argv)
{
	second other[OTHERS];
	void *memory, *piece[16];
	cudaEvent_t event;
	offer made;

	begin(argc, argv);
	for (int i = 0; i < OTHERS; i++)
		other[i] = start_second([i](int socket) { importer(socket, i); });
	OK(cudaMalloc(&memory, BYTES));
	OK(cudaEventCreateWithFlags(&event, cudaEventDisableTiming | cudaEventInterprocess));
	OK(cudaIpcGetMemHandle(&made.memory, memory));
	OK(cudaIpcGetEventHandle(&made.event, event));
	for (int turn = 0; turn < 20; turn++)
		fill(memory, BYTES, (uint32_t)turn);
	OK(cudaEventRecord(event));
	for (second &s : other)
		send_value(s.socket, made);
	for (second &s : other)
		receive_value<char>(s.socket);
	hold("opened by two", { other[0].pid, other[1].pid });
	for (second &s : other) {
		send_value(s.socket, 'c');
		receive_value<char>(s.socket);
	}
	take_device(memory, BYTES);
	OK(cudaFree(memory));
	hold("closed and freed", { other[0].pid, other[1].pid });
	for (second &s : other) {
		send_value(s.socket, 'e');
		end_second(s);
	}
	OK(cudaEventDestroy(event));
	over_in_pieces(
		"cudaMalloc, exported",
		[&](int i, size_t bytes) {
			cudaError_t error = cudaMalloc(&piece[i], bytes);
			if (error == cudaSuccess)
				OK(cudaIpcGetMemHandle(&made.memory, piece[i]));
			return error;
		},
		[&](int i) { OK(cudaFree(piece[i])); });
	end();
}
