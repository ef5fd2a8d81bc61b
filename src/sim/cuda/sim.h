/*
 * Shared by the files of the simulated libcuda.so.1.
 *
 * The server keeps the simulated GPUs ("cards"), their memory and their time. This library keeps handles, addresses and
 * captures. A block is GPU memory that the server accounts for.
 *
 * Lock order: sim.lock (tables, contexts, addresses), sim_capture_lock, sim_event_lock, the locks of the link. While a thread
 * waits for the GPU's work, it holds at most the link's room_lock.
 */
#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "sim/client/server_link.h"
#include "sim/cuda/sim_table.h"
#include "sim/wire.h"

#define SIM_DRIVER_VERSION 13000
#define SIM_FUTURE_VERSION 13010
#define SIM_GRAPH_BLOCKS 64
#define SIM_UNIT (2ull << 20) /* device addresses are allocated in these units */
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
	uint32_t card; /* the server's number; CUDA_VISIBLE_DEVICES renumbers devices */
	/* UUID of the GPU, or of the GPU that contains this MIG instance */
	unsigned char card_uuid[16];
	CUcontext primary;
	unsigned int primary_refs, primary_flags;
	CUmemoryPool default_pool, pool;
	/* The memory of graphs: one block for each time that it grew. */
	uint32_t graph_block[SIM_GRAPH_BLOCKS], graph_blocks;
	uint64_t graph_reserved, graph_reserved_high;
	uint32_t contexts;
};

/* Also makes the handle invalid. volatile: the compiler would drop a store that nothing reads before free(). */
static inline void sim_free_handle(void *handle)
{
	*(volatile uint32_t *)handle = 0; /* the object's magic is its first field */
	free(handle);
}

struct CUctx_st {
	uint32_t magic;
	uint32_t id; /* number at the server */
	CUdevice dev;
	unsigned int flags;
	bool primary;
	uint32_t block; /* the context's own memory */
	CUcontext next;
	CUstream legacy;
	CUstream streams;
	uint32_t peers; /* bit i: may access the memory of device i */
	size_t limits[16];
	uint32_t sms;
	/* memory at the server for thread stacks larger than STACK_BYTES (context.c); 0: none */
	uint32_t stack_block;
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
	pthread_t thread; /* owner of a per-thread default stream */
	CUstream next;
	struct sim_capture *capture; /* guarded by sim_capture_lock */
	/* number given to the stream when it last joined a capture; never reused */
	uint64_t joining;
	bool joined; /* another stream waits for all captured work of this stream */
};

struct CUevent_st {
	uint32_t magic;
	uint32_t id;
	CUcontext ctx;
	unsigned int flags;
	bool imported;
	/* Guarded by sim_event_lock: */
	uint64_t records; /* number of records; an answer about an older record is dropped */
	bool done;
	uint64_t at_ns;
	uint64_t not_before_ns; /* the server's answer: not done before this time */
	uint64_t capture_id;    /* id of the capture that recorded the event last; 0: none */
	uint64_t captured_in;   /* `joining` of the stream in which the event was captured */
};

struct CUfunc_st {
	uint32_t magic;
	CUfunction next;
	CUmodule module;
	uint64_t ns;     /* time of the whole grid on an idle GPU */
	uint64_t blocks; /* the grid size for which ns holds; 0: any */
	bool spins;
	int max_dynamic_shared;
	char name[];
};

struct CUmod_st {
	uint32_t magic;
	CUcontext ctx;
	CUfunction functions;
	CUmodule next;
	/* the module's code; 0: the code fits in the context's memory */
	uint32_t block;
};

/* A step of a stream, or node of a graph. */
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
	/* Only in graphs. `addr` has the address; for STEP_ALLOC, `value` has the bytes. */
	STEP_ALLOC,
	STEP_FREE,
};

struct sim_step {
	enum sim_step_kind kind;
	uint64_t ns;              /* KERNEL, COPY, SET: how long the step takes */
	uint64_t blocks, threads; /* KERNEL: blocks of the grid, threads of a block */
	enum sim_way way;         /* COPY, SET: the direction */
	void *fn;                 /* HOST_FUNC: a CUhostFn; CALLBACK: a CUstreamCallback */
	void *data;
	uint64_t addr, value;
	/* WAIT32, WAIT64: how to compare, as in cuStreamWaitValue32(); ALLOC: the device */
	unsigned int flags;
	CUstream stream; /* CALLBACK: the callback's first argument */
};

struct sim {
	atomic_int mode; /* enum sim_mode */
	pthread_mutex_t lock;
	struct link link;
	int devices_n;
	struct sim_device devices[SIM_MAX_CARDS];
	CUcontext contexts;
	uint32_t next_context;
	atomic_uint captures; /* in progress; sim_unsafe() needs no lock while it is 0 */
};

enum sim_mode { SIM_UNINIT, SIM_READY, SIM_FAULTY, SIM_FORKED };

extern struct sim sim;
extern pthread_mutex_t sim_capture_lock, sim_event_lock;

/* True if `bytes` bytes from `offset` on are inside of `whole` bytes. The program may have given any numbers. */
static inline bool sim_is_within(uint64_t offset, uint64_t bytes, uint64_t whole)
{
	return bytes <= whole && offset <= whole - bytes;
}

/* If `call` fails, returns its error from the function that contains SIM_TRY(). */
#define SIM_TRY(call) \
	do { \
		CUresult try_result_ = (call); \
		if (try_result_ != CUDA_SUCCESS) \
			return try_result_; \
	} while (0)
#define SIM_FAIL_IF(condition, error) \
	do { \
		if (condition) \
			return error; \
	} while (0)

static inline pthread_mutex_t *sim_lock(pthread_mutex_t *lock)
{
	pthread_mutex_lock(lock);
	return lock;
}
static inline void sim_unlock(pthread_mutex_t **lock)
{
	pthread_mutex_unlock(*lock);
}
/* Holds a lock until the end of the scope; SIM_WITH_LOCK() holds sim.lock. */
#define SIM_WITH(lock) \
	__attribute__((cleanup(sim_unlock), unused)) pthread_mutex_t *sim_lock_ = sim_lock(lock)
#define SIM_WITH_LOCK() SIM_WITH(&sim.lock)

/* lib.c. SIM_ENTER begins each entry point: it fails before cuInit(), or if ALLOT_SIM_FAULT asks for a fault there. */
CUresult sim_enter_slow(const char *name, bool needs_init);
static inline CUresult sim_enter(const char *name)
{
	if (__builtin_expect(atomic_load_explicit(&sim.mode, memory_order_relaxed) == SIM_READY, 1))
		return CUDA_SUCCESS;
	return sim_enter_slow(name, true);
}
#define SIM_ENTER(symbol) SIM_TRY(sim_enter(#symbol))
/* An entry point that only returns a constant or calls another function. */
#define SIM_FUNCTION(symbol, params, result) \
	CUresult symbol params \
	{ \
		SIM_ENTER(symbol); \
		return result; \
	}
/* An entry point and its form for the per-thread default stream (ptds), with one body. */
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
/* visible.c. Fills sim.devices. */
CUresult sim_find_devices(void);
/* future.c */
int sim_driver_version(void);
/* Counts an allocation. True if it must fail because of ALLOT_SIM_FAULT=oom-after=N. */
bool sim_fault_oom(void);
/* sim_call() waits for the reply; sim_post() sends a one-way request. */
CUresult sim_call(struct sim_request_msg m, uint64_t *ret_val);
CUresult sim_post(struct sim_request_msg m);
/* Take and give back a number by which the server knows a stream or event. `which` is SIM_ID_STREAM or SIM_ID_EVENT. */
uint32_t sim_id_get(int which);
void sim_id_put(int which, uint32_t id);
enum { SIM_ID_STREAM, SIM_ID_EVENT };

/* context.c */
CUcontext sim_current(void); /* NULL if none */
CUresult sim_need_context(CUcontext *ret_ctx);
bool sim_context_is_valid(CUcontext ctx);
struct sim_device *sim_device_of(CUdevice dev); /* may be NULL */
CUdevice sim_device_with_card(uint64_t card);   /* -1 if the process does not see the card */
static inline struct sim_device *sim_context_device(CUcontext ctx)
{
	return &sim.devices[ctx->dev];
}

/* Sets the bit of the device in *access, or clears it. */
static inline void sim_set_access(uint32_t *access, const CUmemAccessDesc *desc)
{
	uint32_t bit = 1u << desc->location.id;

	*access = desc->flags ? *access | bit : *access & ~bit;
}

/* Returns how long it takes to move `bytes` at a rate, in ns. */
static inline uint64_t sim_ns_of(uint64_t bytes, uint64_t bytes_per_s)
{
	return (uint64_t)((double)bytes * 1e9 / (double)bytes_per_s);
}

/* sm_share.c. Returns the number of SMs that a new context may use, by CUDA_MPS_ACTIVE_THREAD_PERCENTAGE. */
uint32_t sim_space_sms(const struct sim_device *device);
/* Returns the context's SMs in millionths of the GPU's. */
uint64_t sim_space_limit(CUcontext ctx);
/* *ret_ns: the time if nothing else runs in the context. *ret_part: the millionths of the GPU's SMs taken meanwhile. */
void sim_space_fit(CUstream stream, const struct sim_step *step, uint64_t *ret_ns,
		   uint64_t *ret_part);

/* stream.c */
/* NULL, CU_STREAM_LEGACY and CU_STREAM_PER_THREAD mean a default stream of the current context. */
CUresult sim_stream(CUstream handle, bool ptds, CUstream *ret_stream);
CUstream sim_stream_new(CUcontext ctx, unsigned int flags, int priority, uint32_t wire_flags);
void sim_stream_free(CUstream stream);
/* Adds the step to the stream's capture if there is one, else sends it to the server. */
CUresult sim_submit(CUstream stream, const struct sim_step *step);
/* As sim_submit(), without the check for a capture. The step counts as `launches` launches. */
CUresult sim_run_step(CUstream stream, const struct sim_step *step, uint32_t launches);
CUresult sim_stream_wait(CUstream stream);
CUresult sim_context_wait(CUcontext ctx);

/* capture.c */
/* If a capture in progress forbids the program's call: breaks the capture and returns an error. */
CUresult sim_unsafe_slow(void);
static inline CUresult sim_unsafe(void)
{
	return atomic_load_explicit(&sim.captures, memory_order_relaxed) ? sim_unsafe_slow()
									 : CUDA_SUCCESS;
}
#define SIM_UNSAFE() SIM_TRY(sim_unsafe())
/* True: a capture took or forbade the work; *ret_result is the call's result. False: send the work to the server. */
bool sim_capture_step(CUstream stream, const struct sim_step *step, CUresult *ret_result);
bool sim_capture_record(CUstream stream, CUevent event, CUresult *ret_result);
bool sim_capture_wait_event(CUstream stream, CUevent event, CUresult *ret_result);
bool sim_is_capturing(CUstream stream);
/* Call before the host waits for the stream. If a capture forbids that, breaks the capture and returns an error. */
CUresult sim_capture_forbids_wait(CUstream stream);
void sim_capture_stream_gone(CUstream stream);

/* graph.c */
CUgraph sim_graph_new(void);
bool sim_is_graph(CUgraph graph);
bool sim_graph_add(CUgraph graph, const struct sim_step *step, CUgraphNode *ret_node);

/* graph_memory.c: memory that graphs allocate. Returns the address of a new range; 0 if none is left. */
uint64_t sim_graph_addresses(CUcontext ctx, uint64_t bytes);
/* Makes sure that the device has this much graph memory. The memory stays reserved after a launch. */
CUresult sim_graph_map(CUdevice dev, uint64_t bytes);
/* Frees all graph memory of the device: for a trim, and when its last context ends. Call with sim.lock held. */
void sim_graph_memory_gone(struct sim_device *device);

/* host_work.c: work of a stream that the host does, such as callbacks. */
CUresult sim_host_post(CUstream stream, const struct sim_step *step);

/* va.c: device addresses */
enum sim_region_kind {
	REGION_LINEAR,
	REGION_HEAP,     /* 2 MiB in slots of 512 bytes */
	REGION_POOL,     /* a chunk of a memory pool */
	REGION_RESERVED, /* made by cuMemAddressReserve */
	REGION_IPC,
	REGION_POOL_IPC, /* an allocation in another process's pool */
	REGION_MODULE,
	REGION_GRAPH, /* addresses of an allocation in a graph */
};

struct sim_region {
	enum sim_region_kind kind;
	uint64_t base, span; /* span: bytes, a multiple of SIM_UNIT */
	uint64_t bytes;      /* the program's request */
	uint32_t block;      /* the memory at the server; 0: none */
	CUcontext ctx;       /* may be NULL */
	CUdevice dev;
	bool managed;
	bool backed; /* host memory has the contents */
	uint64_t serial;
	void *detail; /* freed with the region */
	struct sim_region *next, *prev;
};

bool sim_va_init(void);
/* Rounds span up to whole units. NULL if no addresses are left. Call with sim.lock held. */
struct sim_region *sim_va_new(enum sim_region_kind kind, uint64_t span, uint64_t alignment);
void sim_va_free(struct sim_region *region);
struct sim_region *sim_va_find(uint64_t addr);
struct sim_region *sim_va_list(void);
bool sim_va_is_device(uint64_t addr);
/* Backs the region with host memory for its contents, if `must` is set or BACKED_MAX (va.c) is not reached. */
void sim_va_add_backing(struct sim_region *region, bool must);
/* True if n bytes at addr may be read and written by this process. */
bool sim_va_has_bytes(uint64_t addr, uint64_t n);

/* memory.c, heap.c, pool.c */
CUresult sim_block_new(CUdevice dev, uint64_t bytes, enum sim_block_kind kind, uint32_t *ret_block);
void sim_block_free(uint32_t block);
uint64_t sim_round(CUdevice dev, uint64_t bytes); /* rounds up to the GPU's granularity */
CUresult sim_free(uint64_t addr);                 /* call with sim.lock held */
/* Frees the region and its memory. Call with sim.lock held. */
void sim_region_drop(struct sim_region *region);
/* Finds the allocation that contains addr. Call with sim.lock held. */
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
/* Call after a sync point: the device's pools release memory above their release threshold. */
void sim_pools_trim_after_sync(CUdevice dev);
/* Returns the device's default pool, made at the first use. Call with sim.lock held. */
CUresult sim_pool_default(CUdevice dev, CUmemoryPool *ret_pool);
bool sim_host_find(uint64_t addr, uint64_t *ret_base, uint64_t *ret_bytes);
/* copy.c. Returns the copy's time and direction, by the kinds of memory at both ends. */
struct sim_step sim_copy_3d_step(CUcontext ctx, const CUDA_MEMCPY3D *copy);
void sim_vmm_region_gone(struct sim_region *region);
/* sim_vmm_has_bytes(): true if host memory has the contents of n bytes at addr. Call both with sim.lock held. */
bool sim_vmm_find(uint64_t addr, uint64_t *ret_base, uint64_t *ret_bytes);
bool sim_vmm_has_bytes(uint64_t addr, uint64_t n);

/* module.c */
uint64_t sim_kernel_ns(CUfunction f, CUdevice dev, uint64_t blocks);
void sim_modules_of_context_gone(CUcontext ctx);
/* Call with sim.lock held. */
void sim_arrays_of_context_gone(CUcontext ctx);
