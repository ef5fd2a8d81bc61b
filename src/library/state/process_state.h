/*
 * The process's tenant, its slot in the report, and the map from CUDA devices to the tenant's devices. process.c changes these.
 *
 * The mode is PROCESS_UNKNOWN until the first cuInit or NVML query. A restarted daemon brings new files, and then the pointers
 * change. The old mappings stay readable until the next restart, for a thread that has loaded an old pointer; after that, pages
 * of zeros replace them.
 */
#pragma once

#include <stdbool.h>

#include "abi/cuda_abi.h"
#include "abi/shm/region.h"
#include "library/state/thread_cache.h"
#include "library/sys/sys.h"

enum process_mode {
	PROCESS_UNKNOWN = 0, /* the daemon was not asked yet */
	PROCESS_PLAIN,       /* no tenant is configured: calls pass unchanged */
	PROCESS_ACTIVE,      /* joined the tenant */
	/* A tenant is configured, but the process could not join: cuInit fails. */
	PROCESS_REFUSED,
	/* The process exits: calls pass unchanged, because the driver may be gone. */
	PROCESS_LEAVING,
};

/* The process's own page. The kernel zeroes it in a forked child (MADV_WIPEONFORK), which does not own the slot. */
struct process_own {
	_Alignas(64) _Atomic uint32_t is_joined;
	_Atomic uint32_t has_one_device; /* the tenant has one device, and `detours` is 0 */
	struct thread_cache cache;
};

_Static_assert(offsetof(struct process_own, cache.spares[1]) <= 64,
	       "the fields that a small allocation reads share one cache line");

/* Bits of process_state.detours: why a call takes a longer path. The gate (gate.c) compares the whole word with 0. */
enum process_detour {
	DETOUR_HOLD = 1,  /* the tenant is swappable: calls enter the hold (swap_hold.h) */
	DETOUR_TRACE = 2, /* the tenant is traced: calls are recorded (trace.h) */
};

/* Nearly every call reads these, so they fit in one cache line. */
struct process_state {
	_Alignas(64) _Atomic uint32_t mode;
	_Atomic uint32_t shared;         /* allocations shared with other processes (shared.h) */
	struct process_own *_Atomic own; /* never NULL */
	const struct region_control *_Atomic control;
	struct region_report *_Atomic report;
	struct region_slot *_Atomic slot;
	_Atomic bool daemon_lost;           /* no heartbeat: last quotas apply, leases do not */
	_Atomic uint32_t captures;          /* stream captures in progress */
	_Atomic uint32_t streams_destroyed; /* so far (inflight.h) */
	_Atomic uint32_t detours;           /* enum process_detour */
	/* This process's slot + 1, to compare with region_control_device.turn. */
	_Atomic uint32_t turn;
	_Atomic uint32_t code_unloads; /* unloads of functions and ends of contexts so far */
};

SYS_DATA struct process_state process_state;

static inline struct process_own *process_own(void)
{
	return atomic_load_explicit(&process_state.own, memory_order_relaxed);
}

/* This process itself has joined and may use its slot. A forked child must first join too. */
static inline bool process_is_active(void)
{
	return atomic_load_explicit(&process_state.mode, memory_order_acquire) == PROCESS_ACTIVE &&
	       likely(atomic_load_explicit(&process_own()->is_joined, memory_order_relaxed));
}

/* The device's index in the tenant's list, or -1. The driver's error if it cannot identify the device, as before cuInit. */
CUresult process_find_device(CUdevice device, int *ret_index);
/* As process_find_device(). -1 also if the driver cannot identify the device. */
int process_device_index(CUdevice device);
/* True if the driver has this device. If not, let the driver fail: its error depends on the first invalid argument. */
bool process_device_exists(CUdevice device);

/* The index of the device with this UUID (16 bytes); -1 if the tenant does not have it. */
int process_uuid_index(const void *uuid);

/* The index of the calling thread's device; -1 if there is none, or the tenant does not have it. */
int process_current_index(void);

static inline const struct region_control_device *process_control_device(int index)
{
	return &atomic_load_explicit(&process_state.control, memory_order_acquire)->device[index];
}

/*
 * For a tenant with short steps that shares the GPU by the GPU's own time slices. The bound is large, because the wait at the
 * end of each step bounds the tenant's work anyway. Predictions then include other tenants' slices, so a smaller bound would
 * stop the tenant's threads needlessly.
 */
#define PROCESS_SLICED_DEPTH_NS (100 * NS_PER_MS)

/* The bound of predicted work in flight under LEASE_FREE. */
static inline uint64_t process_free_depth_ns(const struct region_control_device *c)
{
	bool is_sliced = atomic_load_explicit(&c->sync_point_wanted, memory_order_relaxed) ==
			 SYNC_POINT_ENDS_USE;

	return is_sliced ? PROCESS_SLICED_DEPTH_NS
			 : atomic_load_explicit(&c->free_depth_ns, memory_order_relaxed);
}

/* True if this process may run under the tenant's lease. The daemon changes `turn` first, so read the lease word first. */
static inline bool process_has_turn(const struct region_control_device *c)
{
	uint32_t turn = atomic_load(&c->turn);

	return likely(!turn) ||
	       turn == atomic_load_explicit(&process_state.turn, memory_order_relaxed);
}

static inline struct region_slot_device *process_slot_device(int index)
{
	return &atomic_load_explicit(&process_state.slot, memory_order_acquire)->device[index];
}

/* Call after a change of the tenant's devices or of `detours`. */
void process_update_has_one_device(void);

/* Call in a forked child: forgets the devices that were looked up, and the captures. */
void process_reset(void);
