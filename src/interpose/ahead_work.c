/* What may be queued of work: kernels, and memsets and copies within device memory. */
#include <string.h>

#include "interpose/ahead_inside.h"
#include "interpose/ahead_proof.h"
#include "interpose/estimate.h"
#include "interpose/flight.h"
#include "interpose/real.h"

/* What a launch is taken for before anything is known of it. */
#define UNKNOWN_NS (20 * NS_PER_US)

static uint64_t predicted_ns(const struct work *work, const struct flight_stream *s)
{
	uint64_t ns = atomic_load_explicit(&estimate_of(work)->ns, memory_order_relaxed);

	if (!ns)
		ns = atomic_load_explicit(&s->average_ns, memory_order_relaxed);
	return ns ? ns : UNKNOWN_NS;
}

static struct ahead_record *reserve_work(enum ahead_kind kind, const struct ahead_target *t,
					 const struct work *work, size_t more)
{
	uint64_t ns = predicted_ns(work, t->record);
	uint32_t bytes = (uint32_t)((sizeof(struct ahead_record) + more + 15) & ~(size_t)15);
	struct ahead_record *r = ahead_reserve(bytes, ns);

	if (!r)
		return NULL;
	r->kind = kind;
	r->context = t->context;
	r->stream = t->stream;
	r->ns = ns;
	r->work = *work;
	/* The feeder has no per-thread stream in mind, whatever entry point this came by. */
	r->work.streams = LEGACY;
	r->work.stream = t->stream;
	return r;
}

/* ---- kernels ---- */

/* Parameters in one buffer: { 1: pointer, 2: size, 0 }, in any order. */
static bool read_extra(void **extra, const void **ret_buffer, size_t *ret_bytes)
{
	const void *buffer = NULL;
	size_t bytes = SIZE_MAX;

	for (int i = 0; i < 3 && extra[2 * i]; i++) {
		if (extra[2 * i] == (void *)1)
			buffer = extra[2 * i + 1];
		else if (extra[2 * i] == (void *)2 && extra[2 * i + 1])
			bytes = *(const size_t *)extra[2 * i + 1];
		else
			return false;
	}
	*ret_buffer = buffer;
	*ret_bytes = bytes;
	return buffer && bytes <= AHEAD_PARAM_BYTES_MAX;
}

static size_t attributes_bytes(const struct ahead_kernel *k)
{
	size_t bytes = k->config ? (size_t)k->config->numAttrs * AHEAD_ATTRIBUTE_BYTES : 0;

	return (bytes + 15) & ~(size_t)15;
}

struct parameters {
	struct ahead_layout layout;
	const void *buffer; /* of extra */
	size_t bytes;
};

static bool find_parameters(const struct ahead_kernel *k, struct parameters *p)
{
	p->layout.count = p->layout.bytes = 0;
	p->buffer = NULL;
	p->bytes = 0;
	if (k->params && k->extra)
		return false;
	if (k->extra)
		return read_extra(k->extra, &p->buffer, &p->bytes);
	if (k->params && !proof_layout(k->function, &p->layout))
		return false;
	p->bytes = p->layout.bytes;
	return true;
}

static void fill_kernel(struct ahead_record *r, const struct ahead_kernel *k,
			const struct parameters *p)
{
	unsigned char *data = ahead_record_data(r);

	r->kernel.function = k->function;
	memcpy(r->kernel.grid, k->grid, sizeof(k->grid));
	memcpy(r->kernel.block, k->block, sizeof(k->block));
	r->kernel.shared_bytes = k->shared_bytes;
	r->kernel.is_config = k->config != NULL;
	r->kernel.has_params = k->params != NULL;
	r->kernel.has_extra = k->extra != NULL;
	r->kernel.attributes = k->config ? (uint16_t)k->config->numAttrs : 0;
	r->kernel.params_count = p->layout.count;
	r->kernel.params_bytes = (uint16_t)p->bytes;
	memcpy(r->kernel.offset, p->layout.offset, p->layout.count * sizeof(p->layout.offset[0]));
	if (r->kernel.attributes)
		memcpy(data, k->config->attrs, (size_t)r->kernel.attributes * AHEAD_ATTRIBUTE_BYTES);
	data += attributes_bytes(k);
	if (p->buffer)
		memcpy(data, p->buffer, p->bytes);
	for (unsigned int i = 0; i < p->layout.count; i++)
		memcpy(data + p->layout.offset[i], k->params[i], p->layout.size[i]);
}

bool ahead_launch(const struct work *work, const struct ahead_kernel *k, CUresult *ret_result)
{
	struct parameters p;
	struct ahead_target t;
	struct ahead_record *r = NULL;

	if (ahead_is_on() && (!k->config || proof_allows(k->config))) {
		bool has_target = ahead_find_target(work, &t);
		uint64_t proof = has_target ? proof_of_kernel(k, t.context) : 0;
		if (!has_target) {
			ahead_count(&ahead_counts.no_stream);
		} else if (!proof_is_there(proof)) {
			ahead_count(&ahead_counts.unproved);
		} else if (find_parameters(k, &p)) {
			r = reserve_work(AHEAD_KERNEL, &t, work, attributes_bytes(k) + p.bytes);
		} else {
			proof_remove(proof); /* with it the layout is asked for again */
			ahead_count(&ahead_counts.unknown);
		}
	}
	if (!r)
		return ahead_settle_call(k->config ? "cuLaunchKernelEx" : "cuLaunchKernel",
					 ret_result);
	fill_kernel(r, k, &p);
	ahead_push(r);
	*ret_result = CUDA_SUCCESS;
	return true;
}

void ahead_prove_launch(const struct work *work, const struct ahead_kernel *k)
{
	CUcontext context = real_current_context();

	if (atomic_load_explicit(&ahead_queue.is_off, memory_order_relaxed) || !context ||
	    (k->config && !proof_allows(k->config)))
		return;
	uint64_t proof = proof_of_kernel(k, context);
	if (likely(proof_is_there(proof))) {
		ahead_prove_stream(work);
		return;
	}
	if (k->params)
		proof_learn_layout(k->function);
	proof_add(proof);
	ahead_prove_stream(work);
}

void ahead_prove_stream(const struct work *work)
{
	const struct flight_stream *s = flight_stream_of(work);

	if (!s || flight_is_overflow(s) || !ahead_is_only_device(s->device))
		return;
	uint64_t proof = proof_of_handle(PROOF_STREAM, ahead_stream_of(work), NULL);
	if (!proof_is_there(proof))
		proof_add(proof);
}

/* ---- memory ---- */

static bool is_device_range(CUdeviceptr ptr, size_t bytes)
{
	CUdeviceptr base;
	size_t size;

	return real.cuMemGetAddressRange_v2 &&
	       real.cuMemGetAddressRange_v2(&base, &size, ptr) == CUDA_SUCCESS && ptr >= base &&
	       ptr - base <= size && bytes <= size - (ptr - base);
}

bool ahead_set(const struct work *work, CUdeviceptr dst, uint32_t value, unsigned int element_bytes,
	       size_t count, CUresult *ret_result)
{
	struct ahead_record *r = NULL;
	struct ahead_target t;

	if (ahead_is_on() && count && count <= SIZE_MAX / element_bytes && dst % element_bytes == 0 &&
	    ahead_find_target(work, &t) && is_device_range(dst, count * element_bytes))
		r = reserve_work(AHEAD_SET, &t, work, 0);
	if (!r)
		return ahead_settle_call("cuMemset", ret_result);
	r->set.dst = dst;
	r->set.value = value;
	r->set.element_bytes = element_bytes;
	r->set.count = count;
	ahead_push(r);
	*ret_result = CUDA_SUCCESS;
	return true;
}

bool ahead_copy(const struct work *work, CUdeviceptr dst, CUdeviceptr src, size_t bytes,
		CUresult *ret_result)
{
	struct ahead_record *r = NULL;
	struct ahead_target t;

	if (ahead_is_on() && bytes && ahead_find_target(work, &t) && is_device_range(dst, bytes) &&
	    is_device_range(src, bytes))
		r = reserve_work(AHEAD_COPY, &t, work, 0);
	if (!r)
		return ahead_settle_call("cuMemcpyDtoD", ret_result);
	r->copy.dst = dst;
	r->copy.src = src;
	r->copy.bytes = bytes;
	ahead_push(r);
	*ret_result = CUDA_SUCCESS;
	return true;
}
