/*
 * The library's view of its process: the process's tenant, its slot in the report, and the map from CUDA devices to
 * the tenant's devices. process.h changes this state.
 *
 * Life: UNKNOWN -> (first cuInit or NVML query) -> PLAIN, ACTIVE or REFUSED. A restarted daemon hands out new files:
 * then the pointers change. The old mappings stay readable until the daemon restarts once more, so a thread that has
 * loaded an old slot pointer can finish with it. After that, pages of zeros replace the old mappings, for a thread that
 * is even slower.
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
	PROCESS_ACTIVE,      /* registered */
	/* A tenant is configured, but the process could not join: cuInit fails (fail closed). */
	PROCESS_REFUSED,
	/* The process exits: calls pass unchanged; the driver may be gone. */
	PROCESS_LEAVING,
};

/*
 * State of this process only. The kernel zeroes this page in a forked child (MADV_WIPEONFORK), since the child
 * does not own the parent's slot.
 */
struct process_own {
	_Alignas(64) _Atomic uint32_t is_joined;
	_Atomic uint32_t has_one_device; /* the tenant has one device, and `detours` is 0 */
	struct thread_cache cache;
};

_Static_assert(offsetof(struct process_own, cache.spares[1]) <= 64,
	       "what a small allocation needs is one line of the cache");

/*
 * Bits of process_state.detours. The gate compares the whole word with 0. fast_path.h says where the fast path leads
 * while a bit is set.
 */
enum process_detour {
	DETOUR_HOLD = 1,  /* swappable: calls enter the hold, swap_hold.h */
	DETOUR_TRACE = 2, /* traced: calls are recorded, trace.h */
};

/* Nearly every call reads this, so it fits one cache line. */
struct process_state {
	_Alignas(64) _Atomic uint32_t mode;
	_Atomic uint32_t shared; /* number of objects shared with other processes: shared.h */
	struct process_own *_Atomic own; /* never NULL: an all-zero page before the process joins */
	const struct region_control *_Atomic control;
	struct region_report *_Atomic report;
	struct region_slot *_Atomic slot; /* this process's slot in `report` */
	_Atomic bool daemon_lost;         /* no heartbeat: the last quotas apply, leases do not */
	_Atomic uint32_t captures;     /* number of stream captures in progress in this process */
	_Atomic uint32_t streams_gone; /* number of streams dropped so far: inflight.h */
	_Atomic uint32_t detours;      /* why calls take a longer path: enum process_detour */
	/* this process's slot + 1, which is the value of a device's `turn` when this process has the turn */
	_Atomic uint32_t turn;
	_Atomic uint32_t code_gone; /* number of unloads of functions and ends of contexts so far */
};

SYS_DATA struct process_state process_state;

static inline struct process_own *process_own(void)
{
	return atomic_load_explicit(&process_state.own, memory_order_relaxed);
}

/*
 * True while this process may use its slot: this process has registered, and is not a forked child of a registered
 * one.
 */
static inline bool process_is_active(void)
{
	return atomic_load_explicit(&process_state.mode, memory_order_acquire) == PROCESS_ACTIVE &&
	       likely(atomic_load_explicit(&process_own()->is_joined, memory_order_relaxed));
}

/*
 * Finds the index of a CUDA device in the tenant's list; sets -1 if the device is not in the list. If the driver
 * cannot identify the device (for example before cuInit), returns the driver's error.
 */
CUresult process_find_device(CUdevice device, int *ret_index);
/* As process_find_device(), but returns the index, or -1 if the device was not found. */
int process_device_index(CUdevice device);
/*
 * True if the driver has this device. If not, leave the call to the driver: it refuses every call that names the
 * device, with the error for the first argument that it finds wrong.
 */
bool process_device_is_there(CUdevice device);

/* Returns the device index for a UUID (16 bytes); -1 if the UUID is not one of the tenant's. */
int process_uuid_index(const void *uuid);

/*
 * Returns the index of the calling thread's current device; -1 if none is current or the device is not the
 * tenant's.
 */
int process_current_index(void);

static inline const struct region_control_device *process_control_device(int index)
{
	return &atomic_load_explicit(&process_state.control, memory_order_acquire)->device[index];
}

/* True if it is this process's turn under the tenant's lease. Read this after the lease word. */
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

/*
 * Sets has_one_device, which lets small allocations take their fast path, from the tenant's devices and `detours`.
 * Call after a change of either.
 */
void process_settle_quick_way(void);

/* Call in a forked child: forgets the state of the parent. */
void process_reset(void);
