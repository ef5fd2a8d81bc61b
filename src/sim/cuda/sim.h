/*
 * Inside the simulated libcuda.so.1: what its files share.
 *
 * The card, its memory and its time are the server's; handles, addresses and captures are kept
 * here. Locks, in this order: sim.lock (tables, contexts, addresses), capture lock, event lock,
 * then those of the link. None is held while waiting for the card's work.
 */
#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "sim/client/link.h"
#include "sim/cuda/sim_table.h"
#include "sim/wire.h"

#define SIM_DRIVER_VERSION 13000
#define SIM_FUTURE_VERSION 13010
#define SIM_GRAPH_BLOCKS 64
#define SIM_UNIT (2ull << 20) /* device addresses are given out in these */
#define SIM_MAX(a, b) ((a) > (b) ? (a) : (b))
#define SIM_MIN(a, b) ((a) < (b) ? (a) : (b))

enum sim_magic {
	MAGIC_CONTEXT = 0x5c0de001,
	MAGIC_STREAM,
	MAGIC_EVENT,
	MAGIC_MODULE,
	MAGIC_FUNCTION,
	MAGIC_GRAPH,
	MAGIC_NODE,
	MAGIC_EXEC,
	MAGIC_POOL,
	MAGIC_ARRAY,
	MAGIC_MIPMAP,
	MAGIC_VMM,
	MAGIC_GREEN,
};

struct sim_device {
	struct sim_card_info info;
	uint32_t card;               /* the server's number: CUDA_VISIBLE_DEVICES renumbers */
	unsigned char card_uuid[16]; /* of the card that it is, or is a part of */
	CUcontext primary;
	unsigned int primary_refs, primary_flags;
	CUmemoryPool default_pool, pool;
	/* Of graphs; a block for each growth. */
	uint32_t graph_block[SIM_GRAPH_BLOCKS], graph_blocks;
	uint64_t graph_reserved, graph_reserved_high;
	uint32_t contexts;
};

/*
 * Frees what a handle names, so that the handle is no longer known. The store is volatile: the compiler would leave out
 * one that nobody reads before free().
 */
static inline void sim_free_handle(void *handle)
{
	*(volatile uint32_t *)handle = 0; /* its magic, which is first */
	free(handle);
}

struct CUctx_st {
	uint32_t magic;
	uint32_t id; /* the server's name for it */
	CUdevice dev;
	unsigned int flags;
	bool primary;
	uint32_t block; /* its memory on the card */
	CUcontext next;
	CUstream legacy;
	CUstream streams;
	uint32_t peers; /* bit i: access to device i */
	size_t limits[16];
	uint32_t sms;         /* it may use */
	uint32_t stack_block; /* local memory beyond what a context begins with; 0: none */
};

struct sim_capture;

struct CUstream_st {
	uint32_t magic;
	uint32_t id;
	CUcontext ctx;
	unsigned int flags;
	int priority;
	bool legacy;
	bool per_thread;
	pthread_t thread;            /* of a per-thread default stream */
	CUstream next;               /* of the context */
	struct sim_capture *capture; /* under the capture lock */
	bool joined;                 /* all that it captured has flowed back to another stream */
};

struct CUevent_st {
	uint32_t magic;
	uint32_t id;
	CUcontext ctx;
	unsigned int flags;
	bool imported;
	/* Under the event lock: */
	uint64_t records; /* how often recorded: answers about an older one are dropped */
	bool done;
	uint64_t at_ns;
	uint64_t not_before_ns; /* it can't be done earlier, the server said */
	uint64_t capture_id;    /* last recorded in this capture; 0: in none */
	CUstream captured_in;
};

struct CUfunc_st {
	uint32_t magic;
	CUfunction next;
	CUmodule module;
	uint64_t ns;     /* of the whole grid, on an idle card */
	uint64_t blocks; /* at this many blocks; 0: whatever their number */
	bool spins;
	int max_dynamic_shared;
	char name[];
};

struct CUmod_st {
	uint32_t magic;
	CUcontext ctx;
	CUfunction functions;
	CUmodule next;
	uint32_t block; /* its code on the card; 0: it fits in the context's own memory */
};

/* One step of a stream or node of a graph. */
enum sim_step_kind {
	STEP_KERNEL,
	STEP_COPY,
	STEP_SET,
	STEP_HOST_FUNC,
	STEP_CALLBACK,
	STEP_EMPTY,
	STEP_WAIT32,
	STEP_WAIT64,
	STEP_WRITE32,
	STEP_WRITE64,
	STEP_SPIN,
	STEP_ALLOC, /* addr, value: bytes; in graphs alone, as the next */
	STEP_FREE,
};

struct sim_step {
	enum sim_step_kind kind;
	uint64_t ns;              /* KERNEL, COPY, SET */
	uint64_t blocks, threads; /* KERNEL: blocks of its grid, and threads of a block */
	enum sim_way way;         /* COPY, SET */
	void *fn;                 /* HOST_FUNC: CUhostFn, CALLBACK: CUstreamCallback */
	void *data;
	uint64_t addr, value;
	unsigned int flags; /* ALLOC: its device */
	CUstream stream;    /* CALLBACK's first argument */
};

struct sim {
	atomic_int mode; /* enum sim_mode */
	pthread_mutex_t lock;
	struct link link;
	int devices_n;
	struct sim_device devices[SIM_MAX_CARDS];
	CUcontext contexts;
	uint32_t next_context;
	atomic_uint captures; /* under way: 0 makes every check cheap */
};

enum sim_mode { SIM_UNINIT, SIM_READY, SIM_FAULTY, SIM_FORKED };

extern struct sim sim;
extern pthread_mutex_t sim_capture_lock, sim_event_lock;

/* Returns the result of a call that fails. */
#define SIM_TRY(call) \
	do { \
		CUresult try_result_ = (call); \
		if (try_result_ != CUDA_SUCCESS) \
			return try_result_; \
	} while (0)
/* Returns an error where a condition holds. */
#define SIM_FAIL_IF(condition, error) \
	do { \
		if (condition) \
			return error; \
	} while (0)

/* Holds sim.lock until the end of the block. */
static inline pthread_mutex_t *sim_lock(void)
{
	pthread_mutex_lock(&sim.lock);
	return &sim.lock;
}
static inline void sim_unlock(pthread_mutex_t **lock)
{
	pthread_mutex_unlock(*lock);
}
#define SIM_WITH_LOCK() \
	__attribute__((cleanup(sim_unlock), unused)) pthread_mutex_t *sim_lock_ = sim_lock()

/* lib.c. Every entry begins with SIM_ENTER: is the library up, and is a fault asked for here? */
CUresult sim_enter_slow(const char *name, bool needs_init);
static inline CUresult sim_enter(const char *name)
{
	if (__builtin_expect(atomic_load_explicit(&sim.mode, memory_order_relaxed) == SIM_READY, 1))
		return CUDA_SUCCESS;
	return sim_enter_slow(name, true);
}
#define SIM_ENTER(symbol) SIM_TRY(sim_enter(#symbol))
/* An entry that only answers, or hands on. */
#define SIM_FUNCTION(symbol, params, result) \
	CUresult symbol params \
	{ \
		SIM_ENTER(symbol); \
		return result; \
	}
/* An entry and its per-thread twin, with one body that sees `ptds`. */
#define SIM_TWINS(symbol, suffix, params, ...) \
	CUresult symbol params \
	{ \
		const bool ptds = false; \
		SIM_ENTER(symbol); \
		__VA_ARGS__ \
	} \
	CUresult symbol##suffix params \
	{ \
		const bool ptds = true; \
		SIM_ENTER(symbol##suffix); \
		__VA_ARGS__ \
	}
/* visible.c: fills sim.devices, in cuInit. */
CUresult sim_find_devices(void);
/* future.c. As in CUDA_VERSION: SIM_DRIVER_VERSION, or SIM_FUTURE_VERSION by ALLOT_SIM_FUTURE. */
int sim_driver_version(void);
/* Whether an allocation is to fail, by ALLOT_SIM_FAULT=oom-after=N. */
bool sim_fault_oom(void);
/* A request that waits for its reply. */
CUresult sim_call(struct sim_request_msg m, uint64_t *ret_val);
CUresult sim_post(struct sim_request_msg m);
/* Small numbers for the server: one sequence each for streams and events. */
uint32_t sim_id_get(int which);
void sim_id_put(int which, uint32_t id);
enum { SIM_ID_STREAM, SIM_ID_EVENT };

/* context.c */
CUcontext sim_current(void); /* NULL: none */
CUresult sim_need_context(CUcontext *ret_ctx);
bool sim_context_is_valid(CUcontext ctx);
struct sim_device *sim_device_of(CUdevice dev); /* NULL: no such device */
static inline struct sim_device *sim_context_device(CUcontext ctx)
{
	return &sim.devices[ctx->dev];
}

/* space.c: what of a card's SMs a process and its kernels have. */
/* The SMs of a card that a context made now may use, by CUDA_MPS_ACTIVE_THREAD_PERCENTAGE. */
uint32_t sim_space_sms(const struct sim_device *device);
/* The same, in millionths of them. */
uint64_t sim_space_limit(CUcontext ctx);
/* How long a step takes in its context when alone, and the part of the card's SMs that it has then, in millionths. */
void sim_space_fit(CUstream stream, const struct sim_step *step, uint64_t *ret_ns,
		   uint64_t *ret_part);

/* stream.c */
/* NULL and the two special handles become the streams that they mean in the current context. */
CUresult sim_stream(CUstream handle, bool ptds, CUstream *ret_stream);
CUstream sim_stream_new(CUcontext ctx, unsigned int flags, int priority, uint32_t wire_flags);
void sim_stream_free(CUstream stream);
/* Everything to do with the work of one step: capture, or the card. */
CUresult sim_submit(CUstream stream, const struct sim_step *step);
/* The same without asking whether the stream captures. launches: what it counts for. */
CUresult sim_run_step(CUstream stream, const struct sim_step *step, uint32_t launches);
CUresult sim_stream_wait(CUstream stream);
CUresult sim_context_wait(CUcontext ctx);

/* capture.c */
/* CUDA_SUCCESS unless this call is one that a capture under way forbids (and is broken by). */
CUresult sim_unsafe_slow(void);
static inline CUresult sim_unsafe(void)
{
	return atomic_load_explicit(&sim.captures, memory_order_relaxed) ? sim_unsafe_slow()
									 : CUDA_SUCCESS;
}
#define SIM_UNSAFE() SIM_TRY(sim_unsafe())
/* True when the stream captures and step went to its graph, or that failed: see ret_result. */
bool sim_capture_step(CUstream stream, const struct sim_step *step, CUresult *ret_result);
bool sim_capture_record(CUstream stream, CUevent event, CUresult *ret_result);
bool sim_capture_await(CUstream stream, CUevent event, CUresult *ret_result);
bool sim_is_capturing(CUstream stream);
/* Synchronizing a stream that captures breaks the capture. */
CUresult sim_capture_forbids_wait(CUstream stream);
void sim_capture_stream_gone(CUstream stream);

/* graph.c */
CUgraph sim_graph_new(void);
bool sim_is_graph(CUgraph graph);
bool sim_graph_add(CUgraph graph, const struct sim_step *step, CUgraphNode *ret_node);

/* graph_memory.c: memory that graphs allocate. Addresses for it; 0: none left. */
uint64_t sim_graph_addresses(CUcontext ctx, uint64_t bytes);
/* So much is mapped when a launch needs it, and kept. */
CUresult sim_graph_map(CUdevice dev, uint64_t bytes);
/* The last context is gone. With sim.lock. */
void sim_graph_memory_gone(struct sim_device *device);

/* host.c: what the card waits for the host for. */
CUresult sim_host_post(CUstream stream, const struct sim_step *step);

/* va.c: addresses. Regions are looked up by any address in them, in constant time. */
enum sim_region_kind {
	REGION_LINEAR,
	REGION_HEAP,     /* 2 MiB cut into 512 byte slots */
	REGION_POOL,     /* a chunk of a memory pool */
	REGION_RESERVED, /* cuMemAddressReserve */
	REGION_IPC,
	REGION_POOL_IPC, /* an allocation of another process's pool */
	REGION_MODULE,
	REGION_GRAPH, /* addresses of a graph's allocation */
};

struct sim_region {
	enum sim_region_kind kind;
	uint64_t base, span; /* whole units */
	uint64_t bytes;      /* as asked for */
	uint32_t block;      /* the server's memory; 0: none */
	CUcontext ctx;       /* NULL: not of one context */
	CUdevice dev;
	bool managed;
	bool backed; /* its bytes are kept */
	uint64_t serial;
	void *detail; /* of its kind; freed with it */
	struct sim_region *next, *prev;
};

bool sim_va_init(void);
/* span is rounded up to whole units. NULL: no addresses left. With sim.lock. */
struct sim_region *sim_va_new(enum sim_region_kind kind, uint64_t span, uint64_t alignment);
void sim_va_free(struct sim_region *region);
struct sim_region *sim_va_find(uint64_t addr);
struct sim_region *sim_va_list(void);
bool sim_va_is_device(uint64_t addr);
/* Keeps real bytes for the region if the budget allows, or must. */
void sim_va_back(struct sim_region *region, bool must);
/* Whether n bytes at addr may be read and written by this process. */
bool sim_va_has_bytes(uint64_t addr, uint64_t n);

/* memory.c, heap.c, pool.c */
CUresult sim_block_new(CUdevice dev, uint64_t bytes, enum sim_block_kind kind, uint32_t *ret_block);
void sim_block_free(uint32_t block);
uint64_t sim_round(CUdevice dev, uint64_t bytes); /* to the card's granularity */
CUresult sim_free(uint64_t addr);                 /* with sim.lock */
void sim_region_drop(struct sim_region *region);  /* and its memory; with sim.lock */
/* The allocation that addr is in: false when in none. With sim.lock. */
bool sim_allocation_at(uint64_t addr, uint64_t *ret_base, uint64_t *ret_bytes,
		       struct sim_region **ret_region);
CUresult sim_heap_alloc(CUcontext ctx, uint64_t bytes, CUdeviceptr *ret_ptr);
void sim_heap_region_gone(struct sim_region *region);
bool sim_heap_free(struct sim_region *region, uint64_t addr);
bool sim_heap_find(struct sim_region *region, uint64_t addr, uint64_t *ret_base,
		   uint64_t *ret_bytes);
bool sim_pool_find(struct sim_region *region, uint64_t addr, uint64_t *ret_base,
		   uint64_t *ret_bytes);
CUresult sim_pool_free(struct sim_region *region, uint64_t addr);
CUmemoryPool sim_pool_of(struct sim_region *region);
void sim_pool_region_gone(struct sim_region *region);
/* A wait is over: pools give back what is above their threshold. */
void sim_pools_waited(CUdevice dev);
/* The last context of a device is gone, or the library starts. */
CUresult sim_pool_default(CUdevice dev, CUmemoryPool *ret_pool);
/* Page-locked host memory at addr. */
bool sim_host_find(uint64_t addr, uint64_t *ret_base, uint64_t *ret_bytes);
void sim_vmm_region_gone(struct sim_region *region);
/* The mapping that addr is in; and whether n bytes from there on are kept. With sim.lock. */
bool sim_vmm_find(uint64_t addr, uint64_t *ret_base, uint64_t *ret_bytes);
bool sim_vmm_has_bytes(uint64_t addr, uint64_t n);

/* module.c */
uint64_t sim_kernel_ns(CUfunction f, CUdevice dev, uint64_t blocks);
void sim_modules_of_context_gone(CUcontext ctx);
/* With sim.lock. */
void sim_arrays_of_context_gone(CUcontext ctx);
