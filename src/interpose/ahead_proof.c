#include "interpose/ahead_proof.h"

#include <string.h>

#include "interpose/real.h"

/* Each may stand in some places, or two that meet would void each other for good. Powers of two. */
#define PROOFS 16384
#define LAYOUTS 2048
#define PLACES 4

static _Atomic uint64_t proofs[PROOFS];
static _Atomic uint32_t newcomers;

static struct layout_of {
	CUfunction function; /* NULL: empty */
	uint32_t code_gone;  /* then */
	struct ahead_layout layout;
} layouts[LAYOUTS];
static struct sys_lock layouts_lock;

static uint64_t mix(uint64_t h, uint64_t value)
{
	h = (h ^ value) * 0x9e3779b97f4a7c15ULL;
	return h ^ (h >> 29);
}

/* With what voids it mixed in. */
static uint64_t begin(enum proof_kind kind)
{
	_Atomic uint32_t *gone = kind == PROOF_STREAM ? &guest.streams_gone : &guest.code_gone;

	return mix(mix(0x2545f4914f6cdd1dULL, (uint64_t)kind),
		   atomic_load_explicit(gone, memory_order_acquire));
}

static uint64_t end(uint64_t h)
{
	h = mix(h, 0x5851f42d4c957f2dULL);
	return h ? h : 1;
}

uint64_t proof_of_handle(enum proof_kind kind, const void *handle, CUcontext context)
{
	return end(mix(mix(begin(kind), (uint64_t)(uintptr_t)handle), (uint64_t)(uintptr_t)context));
}

/*
 * Attributes (CUlaunchAttributeID) that say how a kernel runs: clusters, start beside the kernel before it,
 * priority, memory domains, caches; and how much of the value each means, as the rest is whatever the caller's
 * stack held. Not there: cooperative, events, graphs, and what is not known.
 */
#define VALUE_BYTES_MAX 32
static const struct {
	uint32_t id;
	uint8_t bytes;
} harmless[] = {
	{ 0, 0 },   /* ignore */
	{ 1, 28 },  /* access policy window */
	{ 3, 4 },   /* synchronization policy */
	{ 4, 12 },  /* cluster dimension */
	{ 5, 4 },   /* cluster scheduling policy */
	{ 6, 4 },   /* programmatic stream serialization */
	{ 8, 4 },   /* priority */
	{ 9, 2 },   /* memory synchronization domains: which stands for which */
	{ 10, 4 },  /* memory synchronization domain */
	{ 11, 12 }, /* preferred cluster dimension */
	{ 14, 4 },  /* preferred shared memory carve-out */
	{ 16, 4 },  /* scheduling for NVLink */
};

/* How many bytes of its value mean something; negative: it is none of these. */
static int value_bytes(const CUlaunchConfig *config, unsigned int i)
{
	uint32_t id;

	memcpy(&id, (const unsigned char *)config->attrs + (size_t)i * AHEAD_ATTRIBUTE_BYTES,
	       sizeof(id));
	for (size_t n = 0; n < sizeof(harmless) / sizeof(harmless[0]); n++)
		if (harmless[n].id == id)
			return harmless[n].bytes;
	return -1;
}

bool proof_allows(const CUlaunchConfig *config)
{
	if (config->numAttrs > AHEAD_ATTRIBUTES_MAX || (config->numAttrs && !config->attrs))
		return false;
	for (unsigned int i = 0; i < config->numAttrs; i++)
		if (value_bytes(config, i) < 0)
			return false;
	return true;
}

static uint64_t mix_attribute(uint64_t h, const CUlaunchConfig *config, unsigned int i)
{
	const unsigned char *at = (const unsigned char *)config->attrs +
				  (size_t)i * AHEAD_ATTRIBUTE_BYTES;
	uint64_t words[VALUE_BYTES_MAX / 8] = { 0 };
	int bytes = value_bytes(config, i);
	uint32_t id;

	memcpy(&id, at, sizeof(id));
	if (bytes > 0)
		memcpy(words, at + AHEAD_ATTRIBUTE_VALUE, (size_t)bytes);
	h = mix(h, id);
	for (size_t n = 0; n < sizeof(words) / sizeof(words[0]); n++)
		h = mix(h, words[n]);
	return h;
}

uint64_t proof_of_kernel(const struct ahead_kernel *k, CUcontext context)
{
	uint64_t h = mix(begin(PROOF_KERNEL), (uint64_t)(uintptr_t)k->function);

	h = mix(h, (uint64_t)(uintptr_t)context);
	for (int i = 0; i < 3; i++)
		h = mix(h, (uint64_t)k->grid[i] << 32 | k->block[i]);
	h = mix(h, (uint64_t)k->shared_bytes << 3 | (k->params ? 4U : 0) | (k->extra ? 2U : 0) |
			   (k->config ? 1U : 0));
	if (!k->config)
		return end(h);
	for (unsigned int i = 0; i < k->config->numAttrs; i++)
		h = mix_attribute(h, k->config, i);
	return end(h);
}

static _Atomic uint64_t *find(uint64_t proof)
{
	_Atomic uint64_t *first = &proofs[proof % PROOFS & ~(uint64_t)(PLACES - 1)];

	for (_Atomic uint64_t *p = first; p < first + PLACES; p++)
		if (atomic_load_explicit(p, memory_order_acquire) == proof)
			return p;
	return NULL;
}

bool proof_is_there(uint64_t proof)
{
	return find(proof) != NULL;
}

void proof_add(uint64_t proof)
{
	_Atomic uint64_t *first = &proofs[proof % PROOFS & ~(uint64_t)(PLACES - 1)];

	if (find(proof))
		return;
	for (_Atomic uint64_t *p = first; p < first + PLACES; p++) {
		uint64_t none = 0;
		if (atomic_compare_exchange_strong(p, &none, proof))
			return;
	}
	atomic_store_explicit(&first[atomic_fetch_add(&newcomers, 1) % PLACES], proof,
			      memory_order_release);
}

void proof_remove(uint64_t proof)
{
	_Atomic uint64_t *there = find(proof);

	if (there)
		atomic_compare_exchange_strong(there, &proof, 0);
}

void proof_reset(void)
{
	memset(proofs, 0, sizeof(proofs));
	memset(layouts, 0, sizeof(layouts));
	layouts_lock = (struct sys_lock){ 0 };
}

/* ---- layouts ---- */

static struct layout_of *find_layout(CUfunction function)
{
	size_t at = (size_t)(mix(0, (uint64_t)(uintptr_t)function) >> 32) % LAYOUTS;
	struct layout_of *first = &layouts[at & ~(size_t)(PLACES - 1)];

	for (struct layout_of *l = first; l < first + PLACES; l++)
		if (l->function == function)
			return l;
	for (struct layout_of *l = first; l < first + PLACES; l++)
		if (!l->function)
			return l;
	return &first[atomic_fetch_add(&newcomers, 1) % PLACES];
}

/* A kernel's handle may stand for its function, in launches as here. */
static CUresult ask(CUfunction function, size_t index, size_t *offset, size_t *size)
{
	CUresult result = CUDA_ERROR_NOT_SUPPORTED;

	if (real.cuFuncGetParamInfo)
		result = real.cuFuncGetParamInfo(function, index, offset, size);
	if (result != CUDA_SUCCESS && result != CUDA_ERROR_INVALID_VALUE && real.cuKernelGetParamInfo)
		result = real.cuKernelGetParamInfo((CUkernel)function, index, offset, size);
	return result;
}

/* False: there are more than can be kept, or none: then what the caller's pointers mean is not known. */
static bool read_layout(CUfunction function, struct ahead_layout *layout)
{
	size_t offset, size;
	CUresult result;

	layout->count = layout->bytes = 0;
	while ((result = ask(function, layout->count, &offset, &size)) == CUDA_SUCCESS) {
		if (layout->count == AHEAD_PARAMS_MAX || !size || size > AHEAD_PARAM_BYTES_MAX ||
		    offset > AHEAD_PARAM_BYTES_MAX - size)
			return false;
		layout->offset[layout->count] = (uint16_t)offset;
		layout->size[layout->count++] = (uint16_t)size;
		if (offset + size > layout->bytes)
			layout->bytes = (uint16_t)(offset + size);
	}
	return layout->count && result == CUDA_ERROR_INVALID_VALUE;
}

void proof_learn_layout(CUfunction function)
{
	uint32_t now = atomic_load(&guest.code_gone);
	struct ahead_layout layout;

	WITH_LOCK(&layouts_lock);
	struct layout_of *l = find_layout(function);
	if (l->function == function && l->code_gone == now)
		return;
	bool is_known = read_layout(function, &layout);
	l->function = function;
	l->code_gone = now;
	l->layout = is_known ? layout : (struct ahead_layout){ 0 };
}

bool proof_layout(CUfunction function, struct ahead_layout *ret_layout)
{
	WITH_LOCK(&layouts_lock);
	const struct layout_of *l = find_layout(function);
	if (l->function != function || l->code_gone != atomic_load(&guest.code_gone) ||
	    !l->layout.count)
		return false;
	*ret_layout = l->layout;
	return true;
}
