#include <stdlib.h>
#include <string.h>

#include "sim/cuda/sim.h"

#define STACK_MAX 64

/* CU_LIMIT_STACK_SIZE (bytes of a GPU thread's stack): its number, its value in a new context, its largest value. */
#define LIMIT_STACK 0
#define STACK_BYTES 1024
#define STACK_MAX_BYTES (512 << 10)
#define THREADS_PER_SM 2048

static _Thread_local struct {
	CUcontext at[STACK_MAX];
	int n;
} stack;

struct sim_device *sim_device_of(CUdevice dev)
{
	return dev >= 0 && dev < sim.devices_n ? &sim.devices[dev] : NULL;
}

CUdevice sim_device_with_card(uint64_t card)
{
	for (int i = 0; i < sim.devices_n; i++)
		if (sim.devices[i].card == card)
			return i;
	return -1;
}

static bool is_listed(CUcontext ctx)
{
	for (CUcontext c = sim.contexts; c; c = c->next)
		if (c == ctx)
			return true;
	return false;
}

bool sim_context_is_valid(CUcontext ctx)
{
	SIM_WITH_LOCK();
	return is_listed(ctx);
}

CUcontext sim_current(void)
{
	return stack.n ? stack.at[stack.n - 1] : NULL;
}

CUresult sim_need_context(CUcontext *ret_ctx)
{
	CUcontext ctx = sim_current();

	SIM_FAIL_IF(!ctx, CUDA_ERROR_INVALID_CONTEXT);
	/* Safe to read, because a context's struct is never freed. */
	SIM_FAIL_IF(ctx->magic != MAGIC_CONTEXT, CUDA_ERROR_CONTEXT_IS_DESTROYED);
	*ret_ctx = ctx;
	return CUDA_SUCCESS;
}

/* A real GPU needs a while to make a context. Here it takes as long as a test asks for. */
static void delay_creation(void)
{
	const char *text = getenv("ALLOT_SIM_CONTEXT_MS");
	unsigned long ms = text ? strtoul(text, NULL, 10) : 0;
	struct timespec ts = { (time_t)(ms / 1000), (long)(ms % 1000 * 1000000) };

	if (ms && ms <= 60000)
		nanosleep(&ts, NULL);
}

/* Call with sim.lock held. */
static CUresult context_new(CUdevice dev, unsigned int flags, bool primary, CUcontext *ret_ctx)
{
	static const size_t limits[16] = { STACK_BYTES, 1 << 20, 8 << 20, 2, 2048, 128 };
	struct sim_device *device = sim_device_of(dev);
	CUcontext ctx = calloc(1, sizeof(*ctx));

	SIM_FAIL_IF(!ctx, CUDA_ERROR_OUT_OF_MEMORY);
	delay_creation();
	CUresult r = sim_block_new(dev, device->info.context_bytes, SIM_BLOCK_CONTEXT, &ctx->block);
	if (r != CUDA_SUCCESS) {
		free(ctx);
		return r;
	}
	ctx->magic = MAGIC_CONTEXT;
	ctx->id = ++sim.next_context;
	ctx->dev = dev;
	ctx->flags = flags;
	ctx->primary = primary;
	ctx->sms = sim_space_sms(device);
	memcpy(ctx->limits, limits, sizeof(limits));
	ctx->legacy = sim_stream_new(ctx, 0, 0, SIM_STREAM_LEGACY);
	if (!ctx->legacy) {
		sim_block_free(ctx->block);
		free(ctx);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	ctx->legacy->legacy = true;
	ctx->next = sim.contexts;
	sim.contexts = ctx;
	device->contexts++;
	*ret_ctx = ctx;
	return CUDA_SUCCESS;
}

/* Frees what the context owns, but not the struct, because context stacks may still point to it. Call with sim.lock held. */
static void context_end(CUcontext ctx)
{
	struct sim_device *device = sim_context_device(ctx);
	struct sim_region *region, *next;
	CUcontext *at;

	ctx->magic = 0;
	for (at = &sim.contexts; *at != ctx; at = &(*at)->next)
		;
	*at = ctx->next;
	sim_call((struct sim_request_msg){ .type = SIM_CTX_FREE,
					   .card = device->card,
					   .arg = { ctx->id } },
		 NULL);
	while (ctx->streams)
		sim_stream_free(ctx->streams);
	ctx->legacy = NULL;
	sim_modules_of_context_gone(ctx);
	sim_arrays_of_context_gone(ctx);
	device->contexts--;
	for (region = sim_va_list(); region; region = next) {
		next = region->next;
		if (region->ctx == ctx || (!device->contexts && region->kind == REGION_POOL &&
					   &sim.devices[region->dev] == device))
			sim_region_drop(region);
	}
	if (!device->contexts)
		sim_graph_memory_gone(device);
	sim_block_free(ctx->stack_block);
	sim_block_free(ctx->block);
}

CUresult cuDevicePrimaryCtxRetain(CUcontext *ctx, CUdevice dev)
{
	struct sim_device *device = sim_device_of(dev);

	SIM_ENTER(cuDevicePrimaryCtxRetain);
	SIM_FAIL_IF(!ctx, CUDA_ERROR_INVALID_VALUE);
	SIM_FAIL_IF(!device, CUDA_ERROR_INVALID_DEVICE);
	SIM_WITH_LOCK();
	if (!device->primary)
		SIM_TRY(context_new(dev, device->primary_flags, true, &device->primary));
	device->primary_refs++;
	*ctx = device->primary;
	return CUDA_SUCCESS;
}

static CUresult primary_release(CUdevice dev)
{
	struct sim_device *device = sim_device_of(dev);

	SIM_FAIL_IF(!device, CUDA_ERROR_INVALID_DEVICE);
	SIM_WITH_LOCK();
	SIM_FAIL_IF(!device->primary_refs, CUDA_ERROR_INVALID_CONTEXT);
	if (--device->primary_refs == 0) {
		context_end(device->primary);
		device->primary = NULL;
	}
	return CUDA_SUCCESS;
}

SIM_FUNCTION(cuDevicePrimaryCtxRelease, (CUdevice dev), primary_release(dev))
SIM_FUNCTION(cuDevicePrimaryCtxRelease_v2, (CUdevice dev), primary_release(dev))

static CUresult primary_reset(CUdevice dev)
{
	struct sim_device *device = sim_device_of(dev);

	SIM_FAIL_IF(!device, CUDA_ERROR_INVALID_DEVICE);
	SIM_WITH_LOCK();
	if (device->primary) {
		context_end(device->primary);
		device->primary = NULL;
		device->primary_refs = 0;
	}
	return CUDA_SUCCESS;
}

SIM_FUNCTION(cuDevicePrimaryCtxReset, (CUdevice dev), primary_reset(dev))
SIM_FUNCTION(cuDevicePrimaryCtxReset_v2, (CUdevice dev), primary_reset(dev))

CUresult cuDevicePrimaryCtxGetState(CUdevice dev, unsigned int *flags, int *active)
{
	struct sim_device *device = sim_device_of(dev);

	SIM_ENTER(cuDevicePrimaryCtxGetState);
	SIM_FAIL_IF(!device, CUDA_ERROR_INVALID_DEVICE);
	SIM_FAIL_IF(!flags || !active, CUDA_ERROR_INVALID_VALUE);
	SIM_WITH_LOCK();
	*flags = device->primary_flags;
	*active = device->primary != NULL;
	return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxSetFlags_v2(CUdevice dev, unsigned int flags)
{
	struct sim_device *device = sim_device_of(dev);

	SIM_ENTER(cuDevicePrimaryCtxSetFlags_v2);
	SIM_FAIL_IF(!device, CUDA_ERROR_INVALID_DEVICE);
	SIM_WITH_LOCK();
	device->primary_flags = flags;
	if (device->primary)
		device->primary->flags = flags;
	return CUDA_SUCCESS;
}

static CUresult push(CUcontext ctx)
{
	SIM_FAIL_IF(!ctx || ctx->magic != MAGIC_CONTEXT, CUDA_ERROR_INVALID_CONTEXT);
	SIM_FAIL_IF(stack.n == STACK_MAX, CUDA_ERROR_OUT_OF_MEMORY);
	stack.at[stack.n++] = ctx;
	return CUDA_SUCCESS;
}

static CUresult create(CUcontext *ctx, unsigned int flags, CUdevice dev)
{
	SIM_FAIL_IF(!ctx, CUDA_ERROR_INVALID_VALUE);
	SIM_FAIL_IF(!sim_device_of(dev), CUDA_ERROR_INVALID_DEVICE);
	SIM_FAIL_IF(stack.n == STACK_MAX, CUDA_ERROR_OUT_OF_MEMORY);
	SIM_WITH_LOCK();
	SIM_TRY(context_new(dev, flags, false, ctx));
	return push(*ctx);
}

SIM_FUNCTION(cuCtxCreate_v2, (CUcontext * ctx, unsigned int flags, CUdevice dev),
	     create(ctx, flags, dev))

CUresult cuCtxCreate_v3(CUcontext *ctx, CUexecAffinityParam *affinity, int affinities,
			unsigned int flags, CUdevice dev)
{
	SIM_ENTER(cuCtxCreate_v3);
	/* SM affinity is not simulated; on a real GPU it needs MPS. */
	SIM_FAIL_IF(affinities, CUDA_ERROR_NOT_SUPPORTED);
	return create(ctx, flags, dev);
}

SIM_FUNCTION(cuCtxCreate_v4,
	     (CUcontext * ctx, CUctxCreateParams *how, unsigned int flags, CUdevice dev),
	     create(ctx, flags, dev))

CUresult cuCtxDestroy_v2(CUcontext ctx)
{
	SIM_ENTER(cuCtxDestroy_v2);
	SIM_WITH_LOCK();
	SIM_FAIL_IF(!is_listed(ctx) || ctx->primary, CUDA_ERROR_INVALID_CONTEXT);
	context_end(ctx);
	stack.n -= sim_current() == ctx;
	return CUDA_SUCCESS;
}

SIM_FUNCTION(cuCtxPushCurrent_v2, (CUcontext ctx), push(ctx))

CUresult cuCtxPopCurrent_v2(CUcontext *ctx)
{
	SIM_ENTER(cuCtxPopCurrent_v2);
	SIM_FAIL_IF(!stack.n, CUDA_ERROR_INVALID_CONTEXT);
	stack.n--;
	if (ctx)
		*ctx = stack.at[stack.n];
	return CUDA_SUCCESS;
}

CUresult cuCtxGetCurrent(CUcontext *ctx)
{
	SIM_ENTER(cuCtxGetCurrent);
	SIM_FAIL_IF(!ctx, CUDA_ERROR_INVALID_VALUE);
	*ctx = sim_current();
	return CUDA_SUCCESS;
}

CUresult cuCtxSetCurrent(CUcontext ctx)
{
	SIM_ENTER(cuCtxSetCurrent);
	if (!ctx) {
		stack.n -= stack.n > 0;
		return CUDA_SUCCESS;
	}
	SIM_FAIL_IF(ctx->magic != MAGIC_CONTEXT, CUDA_ERROR_INVALID_CONTEXT);
	if (!stack.n)
		return push(ctx);
	stack.at[stack.n - 1] = ctx;
	return CUDA_SUCCESS;
}

/* Replaces NULL by the current context. */
static CUresult given_or_current(CUcontext *ctx)
{
	if (!*ctx)
		return sim_need_context(ctx);
	return sim_context_is_valid(*ctx) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT;
}

static CUresult synchronize(CUcontext ctx)
{
	SIM_TRY(given_or_current(&ctx));
	SIM_UNSAFE();
	return sim_context_wait(ctx);
}

SIM_FUNCTION(cuCtxSynchronize, (void), synchronize(NULL))
SIM_FUNCTION(cuCtxSynchronize_v2, (CUcontext ctx), synchronize(ctx))

static CUresult get_device(CUdevice *dev, CUcontext ctx)
{
	SIM_TRY(given_or_current(&ctx));
	SIM_FAIL_IF(!dev, CUDA_ERROR_INVALID_VALUE);
	*dev = ctx->dev;
	return CUDA_SUCCESS;
}

SIM_FUNCTION(cuCtxGetDevice, (CUdevice * dev), get_device(dev, NULL))
SIM_FUNCTION(cuCtxGetDevice_v2, (CUdevice * dev, CUcontext ctx), get_device(dev, ctx))

CUresult cuCtxGetApiVersion(CUcontext ctx, unsigned int *version)
{
	SIM_ENTER(cuCtxGetApiVersion);
	SIM_FAIL_IF(!version, CUDA_ERROR_INVALID_VALUE);
	*version = 3020;
	return CUDA_SUCCESS;
}

CUresult cuCtxGetFlags(unsigned int *flags)
{
	CUcontext ctx;

	SIM_ENTER(cuCtxGetFlags);
	SIM_TRY(sim_need_context(&ctx));
	*flags = ctx->flags;
	return CUDA_SUCCESS;
}

CUresult cuCtxSetFlags(unsigned int flags)
{
	CUcontext ctx;

	SIM_ENTER(cuCtxSetFlags);
	SIM_TRY(sim_need_context(&ctx));
	ctx->flags = flags;
	return CUDA_SUCCESS;
}

CUresult cuCtxGetId(CUcontext ctx, unsigned long long *id)
{
	SIM_ENTER(cuCtxGetId);
	if (!ctx)
		SIM_TRY(sim_need_context(&ctx));
	SIM_FAIL_IF(!id || !sim_context_is_valid(ctx), CUDA_ERROR_INVALID_VALUE);
	*id = ctx->id;
	return CUDA_SUCCESS;
}

/* Takes GPU memory for stack bytes above STACK_BYTES at once. The real driver takes it only at the next launch. */
static CUresult set_stack(CUcontext ctx, size_t bytes)
{
	uint64_t threads = (uint64_t)sim_context_device(ctx)->info.sms * THREADS_PER_SM;
	uint32_t block = 0;

	SIM_FAIL_IF(bytes > STACK_MAX_BYTES, CUDA_ERROR_INVALID_VALUE);
	SIM_WITH_LOCK();
	if (bytes > STACK_BYTES)
		SIM_TRY(sim_block_new(ctx->dev, sim_round(ctx->dev, (bytes - STACK_BYTES) * threads),
				      SIM_BLOCK_DATA, &block));
	sim_block_free(ctx->stack_block);
	ctx->stack_block = block;
	ctx->limits[LIMIT_STACK] = bytes;
	return CUDA_SUCCESS;
}

CUresult cuCtxSetLimit(CUlimit limit, size_t value)
{
	CUcontext ctx;

	SIM_ENTER(cuCtxSetLimit);
	SIM_TRY(sim_need_context(&ctx));
	SIM_FAIL_IF(limit < 0 || limit > 8, CUDA_ERROR_INVALID_VALUE);
	if (limit == LIMIT_STACK)
		return set_stack(ctx, value);
	ctx->limits[limit] = value;
	return CUDA_SUCCESS;
}

CUresult cuCtxGetLimit(size_t *value, CUlimit limit)
{
	CUcontext ctx;

	SIM_ENTER(cuCtxGetLimit);
	SIM_TRY(sim_need_context(&ctx));
	SIM_FAIL_IF(!value || limit < 0 || limit > 8, CUDA_ERROR_INVALID_VALUE);
	*value = ctx->limits[limit];
	return CUDA_SUCCESS;
}
