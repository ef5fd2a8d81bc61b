/*
 * What all samples share. A sample is a small program that runs twice, native and as a tenant, and
 * must have the same results; tests/gpu/checks/pair.py reads its standard output:
 *
 *     hold()     at its greatest use of memory: the harness compares ledger and NVML meanwhile
 *     take()     result bytes, into the checksum
 *     over()     what came of asking for more than --quota, which only a tenant is given
 *     end()      the checksum, and before it what came of all such attempts
 *     skip()     what it needs is missing here
 *
 * OK(call) ends the program on an error of the runtime or the driver.
 */
#pragma once

#include <cuda.h>
#include <cuda_runtime.h>

#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <string>
#include <unistd.h>
#include <vector>

constexpr size_t KIB = 1024, MIB = 1024 * KIB, GIB = 1024 * MIB;

/* ---- errors ---- */

inline const char *name_of(cudaError_t error)
{
	return cudaGetErrorName(error);
}

inline const char *name_of(CUresult result)
{
	static thread_local char text[32];

	snprintf(text, sizeof(text), "CUresult %d", (int)result);
	return text;
}

template <typename E> void ok(E error, const char *what, const char *file, int line)
{
	if ((int)error == 0)
		return;
	fflush(stdout);
	fprintf(stderr, "%s:%d: %s: %s\n", file, line, what, name_of(error));
	_exit(1);
}

#define OK(call) ok((call), #call, __FILE__, __LINE__)

inline void expect(bool is_so, const char *what)
{
	if (is_so)
		return;
	fflush(stdout);
	fprintf(stderr, "not so: %s\n", what);
	_exit(1);
}

/* ---- the lines ---- */

struct sample_state {
	size_t quota_bytes = 0; /* 0: native */
	uint64_t digest = 0xcbf29ce484222325;
	bool all_refused = true;
	std::string attempts;
};
inline sample_state sample;

inline void begin(int argc, char **argv)
{
	for (int i = 1; i + 1 < argc; i++)
		if (strcmp(argv[i], "--quota") == 0)
			sample.quota_bytes = strtoull(argv[i + 1], nullptr, 10);
}

inline void say(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vprintf(format, args);
	va_end(args);
	putchar('\n');
	fflush(stdout);
}

/*
 * `more`: other processes of the sample that use the GPU, all idle. `unseen_bytes` are charged, and NVML
 * tells of them in no process.
 */
inline void hold(const char *name, std::vector<int> more = {}, size_t unseen_bytes = 0)
{
	std::string pids = std::to_string(getpid());
	char line[64];

	OK(cudaDeviceSynchronize());
	for (int pid : more)
		pids += ", " + std::to_string(pid);
	say("{\"at\": \"hold\", \"name\": \"%s\", \"pids\": [%s], \"unseen_bytes\": %zu}", name,
	    pids.c_str(), unseen_bytes);
	if (!fgets(line, sizeof(line), stdin))
		_exit(1);
}

inline void skip(const char *why)
{
	say("{\"at\": \"skip\", \"why\": \"%s\"}", why);
	exit(0);
}

inline void end()
{
	OK(cudaDeviceSynchronize());
	OK(cudaGetLastError());
	if (!sample.attempts.empty())
		say("{\"at\": \"over\", \"refused\": %s, \"what\": \"%s\"}",
		    sample.all_refused ? "true" : "false", sample.attempts.c_str());
	say("{\"at\": \"end\", \"digest\": \"%016llx\"}", (unsigned long long)sample.digest);
}

/* ---- results ---- */

/* FNV-1a; the order of the calls counts. */
inline uint64_t checksum(uint64_t digest, const void *bytes, size_t count)
{
	for (size_t i = 0; i < count; i++)
		digest = (digest ^ ((const unsigned char *)bytes)[i]) * 0x100000001b3;
	return digest;
}

inline void take(const void *bytes, size_t count)
{
	sample.digest = checksum(sample.digest, bytes, count);
}

template <typename T> void take(const T &value)
{
	take(&value, sizeof(value));
}

inline uint64_t checksum_of_device(const void *device, size_t count)
{
	std::vector<unsigned char> host(count);

	OK(cudaMemcpy(host.data(), device, count, cudaMemcpyDefault));
	return checksum(0, host.data(), count);
}

inline void take_device(const void *device, size_t count)
{
	take(checksum_of_device(device, count));
}

/* ---- over the quota ---- */

/* An attempt's outcome; the runtime's last error is cleared. */
template <typename E> void over(const std::string &what, E error)
{
	const int out_of_memory = 2; /* cudaErrorMemoryAllocation and CUDA_ERROR_OUT_OF_MEMORY alike */

	sample.all_refused &= (int)error == out_of_memory;
	sample.attempts += (sample.attempts.empty() ? "" : "; ") + what + ": " +
			   ((int)error ? name_of(error) : "success");
	cudaGetLastError();
}

/*
 * Asks for twice the quota, at once and then in eighths of it, by get(index, bytes), till one is
 * refused. is_resident: what was got by then is on the card, so that it is looked at.
 */
template <typename Get>
void over_in_pieces(const char *what, Get get, std::function<void(int)> give_back,
		    bool is_resident = true)
{
	const size_t piece = sample.quota_bytes / 8 / (2 * MIB) * (2 * MIB);
	int got = 0;

	if (!sample.quota_bytes)
		return;
	auto error = get(0, 2 * sample.quota_bytes);
	if ((int)error == 0)
		give_back(0);
	over(std::string(what) + ", at once", error);
	for (error = get(0, piece); (int)error == 0 && ++got < 16;)
		error = get(got, piece);
	if (is_resident && (int)error != 0) {
		cudaGetLastError();
		hold((std::string(what) + ", full").c_str());
	}
	over(std::string(what) + ", in pieces", error);
	while (got > 0)
		give_back(--got);
}

/* ---- work ---- */

__host__ __device__ inline uint32_t mix(uint32_t x)
{
	x = (x ^ x >> 16) * 0x7feb352dU;
	x = (x ^ x >> 15) * 0x846ca68bU;
	return x ^ x >> 16;
}

static __global__ void fill_kernel(uint32_t *p, size_t n, uint32_t seed)
{
	for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < n;
	     i += (size_t)gridDim.x * blockDim.x)
		p[i] = mix((uint32_t)i + seed);
}

static __global__ void stir_kernel(uint32_t *p, size_t n)
{
	for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < n;
	     i += (size_t)gridDim.x * blockDim.x)
		p[i] = mix(p[i] + (uint32_t)i);
}

/* Sets words that depend on their place and the seed. */
inline void fill(void *p, size_t bytes, uint32_t seed, cudaStream_t stream = 0)
{
	fill_kernel<<<264, 256, 0, stream>>>((uint32_t *)p, bytes / 4, seed);
	OK(cudaGetLastError());
}

/* Changes each word to one that depends on what it was. */
inline void stir(void *p, size_t bytes, cudaStream_t stream = 0)
{
	stir_kernel<<<264, 256, 0, stream>>>((uint32_t *)p, bytes / 4);
	OK(cudaGetLastError());
}
