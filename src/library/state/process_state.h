/*
 * The process as the library sees it: which tenant it belongs to, its slot in the report, and the
 * map from CUDA devices to the tenant's devices. process.h changes it.
 *
 * Life: UNKNOWN -> (first cuInit or NVML question) -> PLAIN, ACTIVE or REFUSED. A daemon that was
 * restarted hands out new files: the pointers change, the old mappings stay readable until the
 * next-but-one change, so whoever picked up a slot finishes on it. For whoever is later still there are
 * pages of zeros in their place.
 */
#pragma once

#include <stdbool.h>

#include "abi/cuda_abi.h"
#include "abi/shm/region.h"
#include "library/state/thread_cache.h"
#include "library/sys/sys.h"

enum process_mode {
	PROCESS_UNKNOWN = 0, /* not asked yet */
	PROCESS_PLAIN,       /* no tenant configured: transparent */
	PROCESS_ACTIVE,      /* registered */
	PROCESS_REFUSED, /* configured, but the daemon could not be had: cuInit fails (closed) */
	PROCESS_LEAVING, /* the process exits: transparent, the driver may be gone */
};

/*
 * What is this very process's: zeroed by the kernel in a forked child (MADV_WIPEONFORK), as a child is not
 * its parent's slot, and a lock may have been held by a thread that is not in it.
 */
struct process_own {
	_Alignas(64) _Atomic uint32_t is_joined;
	_Atomic uint32_t has_one_device; /* the tenant has no second, and there are no detours */
	struct thread_cache cache;
	struct sys_lock join_lock;
};

_Static_assert(offsetof(struct process_own, cache.spares[1]) <= 64,
	       "what a small allocation needs is one line of the cache");

/* Bits. Their sum is one test for the gate; where the fast path leads meanwhile: fast_path.h. */
enum process_detour {
	DETOUR_HOLD = 1,  /* swappable: calls pass the hold, swap_hold.h */
	DETOUR_TRACE = 2, /* traced: what they do is recorded, trace.h */
};

/* What nearly every call looks at is in one line as well. */
struct process_state {
	_Alignas(64) _Atomic uint32_t mode;
	_Atomic uint32_t shared;         /* how much this process shares with others: shared.h */
	struct process_own *_Atomic own; /* never NULL; before it joins, one that all is zero in */
	const struct region_control *_Atomic control;
	struct region_report *_Atomic report;
	struct region_slot *_Atomic slot; /* ours in report */
	_Atomic bool daemon_lost;         /* no heartbeat: last quotas hold, leases do not */
	_Atomic uint32_t captures;        /* stream captures under way in this process */
	_Atomic uint32_t streams_gone;    /* counts drops of streams: inflight.h */
	_Atomic uint32_t detours; /* why calls go round by more than the usual: enum process_detour */
	_Atomic uint32_t turn;    /* what a device's turn says when it is ours: slot + 1 */
	_Atomic uint32_t code_gone; /* counts unloads of functions, and ends of contexts */
};

SYS_DATA struct process_state process_state;

static inline struct process_own *process_own(void)
{
	return atomic_load_explicit(&process_state.own, memory_order_relaxed);
}

/* True while this process may use its slot: registered, and not a fork of the one that did. */
static inline bool process_is_active(void)
{
	return atomic_load_explicit(&process_state.mode, memory_order_acquire) == PROCESS_ACTIVE &&
	       likely(atomic_load_explicit(&process_own()->is_joined, memory_order_relaxed));
}

/*
 * Index of a CUDA device in the tenant's list, or -1. An error is what the driver says of a device that it can't
 * name, as before cuInit.
 */
CUresult process_find_device(CUdevice device, int *ret_index);
/* The same; -1: it was not found. */
int process_device_index(CUdevice device);
/* Whether the driver has the device. If not, it refuses every call that names it, by whatever is wrong first. */
bool process_device_is_there(CUdevice device);

/* Index for a UUID (16 bytes); -1: not one of the tenant's. */
int process_uuid_index(const void *uuid);

/* Index of the calling thread's current device; -1: none current, or not the tenant's. */
int process_current_index(void);

static inline const struct region_control_device *process_control_device(int index)
{
	return &atomic_load_explicit(&process_state.control, memory_order_acquire)->device[index];
}

/* Whether it is this process's turn under the tenant's lease. To be read after the lease word. */
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
 * Lets small allocations take their quick way (has_one_device), or no longer: as the tenant's devices and the detours
 * say. After a change of these.
 */
void process_settle_quick_way(void);

/* In a forked child. */
void process_reset(void);
