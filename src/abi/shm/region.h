/*
 * The region: the memory that one tenant shares with the daemon.
 *
 *   control  One file per tenant, written only by the daemon. The tenant maps it read-only; the memfd has F_SEAL_FUTURE_WRITE,
 *            so it cannot be mapped writable.
 *   report   One file per tenant, written by the tenant's processes, each in its own slot. It is sealed against shrinking and
 *            growing, so that no tenant can make the daemon fault on it. The daemon trusts no value in a report, and checks
 *            each value when it reads the value.
 *
 * A daemon that takes over a tenant from an earlier daemon creates both files anew, because it cannot write to the earlier
 * daemon's control file. The library then maps the new files instead (library/process.c).
 *
 * No field holds a point in time, since clocks differ across time namespaces. Durations are in nanoseconds. Integers have the
 * machine's byte order. A field's memory order is relaxed unless its comment says otherwise; seq_cst is for fields from which
 * both sides make decisions.
 *
 * A lease is permission to use one device. At the gate, the library holds a thread before it gives work to the driver
 * (library/launch/gate.h). The doorbell wakes the daemon (struct region_bell). The arena is host memory to which swapped GPU
 * memory is copied.
 */
#pragma once

#include <linux/futex.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "abi/shm/step_counts.h"

#define REGION_MAGIC 0x746f6c6cU /* "llot" */
#define REGION_VERSION 8U
#define REGION_MAX_DEVICES 16
#define REGION_MAX_SLOTS 1024    /* most processes of a tenant at the same time */
#define REGION_MAX_EXPORTS 4096  /* entries for memory that processes share */
#define REGION_NAME_MAX 64       /* bytes of a tenant's name, including the NUL */
#define REGION_ARENA_CHUNKS 4096 /* chunks of a swap arena (library/swap/swap_arena.h) */
/* Page-locked host memory is counted like one more device. It has this index in arrays of devices. */
#define REGION_HOST REGION_MAX_DEVICES

/*
 * The lease word has the state in its low 8 bits and a counter of changes above them. The counter lets a thread that waits on
 * the futex notice each change, even if the state has changed back at once.
 */
enum lease_state {
	LEASE_STOP = 0, /* no work may start */
	/* no work may start; the process reports when its running work has ended */
	LEASE_CLOSING = 1,
	/* work may start while less than region_control_device.depth_ns of work is in flight */
	LEASE_GO = 2,
	/*
	 * The tenant runs without turns: it is alone on the device, or the hardware slices the device's time among tenants with
	 * short steps. Work may start while less than process_free_depth_ns() (library/state/process_state.h) is in flight.
	 */
	LEASE_FREE = 3,
	/* Several tenants run at the same time. Each launch is paid for with tokens (region_control_device.granted). */
	LEASE_PACED = 4,
};
#define LEASE_STATE_MASK 0xffU
#define LEASE_SEQUENCE_STEP 0x100U

static inline enum lease_state lease_state_of(uint32_t word)
{
	return (enum lease_state)(word & LEASE_STATE_MASK);
}

/* When the library rings the doorbell at sync points: waits after which the process has no work on the device in flight. */
enum region_sync_point {
	SYNC_POINT_UNTOLD, /* never */
	/* At each sync point. The library first clears region_slot_device.busy, unless another thread has launched work. */
	SYNC_POINT_RUNG,
	/* As SYNC_POINT_RUNG, and also when work begins on an idle device (region_slot_device.busy is 0). */
	SYNC_POINT_ENDS_USE,
};

/* The swap word has the daemon's order in its low 8 bits, and a counter of changes above them. */
enum swap_order {
	SWAP_ORDER_IN = 0,  /* keep the memory on the GPU, or bring it back */
	SWAP_ORDER_OUT = 1, /* copy all movable memory to the arena, and free it on the GPU */
	/*
	 * The daemon has locked the process's driver calls, or is about to (daemon/memory/checkpoint). The library makes no
	 * driver calls of its own, and confirms the order in region_slot.swap_word.
	 */
	SWAP_ORDER_PARKED = 2,
};
#define SWAP_ORDER_MASK 0xffU
#define SWAP_SEQUENCE_STEP 0x100U

static inline enum swap_order swap_order_of(uint32_t word)
{
	return (enum swap_order)(word & SWAP_ORDER_MASK);
}

/* Where a process's swappable memory is (library/swap/swap.h). */
enum swap_state {
	SWAP_NONE = 0,      /* the tenant is not swappable, or swapping has not begun */
	SWAP_IN = 1,        /* on the GPU */
	SWAP_LEAVING = 2,   /* being moved from the GPU to the arena */
	SWAP_OUT = 3,       /* in the arena; the process's calls wait */
	SWAP_RETURNING = 4, /* being moved back to the GPU; the process's calls wait */
	SWAP_SHORT = 5,     /* in the arena; the GPU lacks room, so the process's calls fail */
};

/* One device of the tenant. Written by the daemon. */
struct region_control_device {
	uint8_t uuid[16];                /* of the GPU or MIG instance; fixed */
	_Atomic uint32_t lease;          /* futex word, seq_cst; see enum lease_state */
	_Atomic uint32_t cores_pct_x100; /* guaranteed share of the device's time; 0 if none */
	/* highest allowed share of the device's time; 10000 means no cap */
	_Atomic uint32_t limit_pct_x100;
	/* share of the device's time charged to the tenant in the last second */
	_Atomic uint32_t got_1s_pct_x100;
	_Atomic uint64_t quota_bytes;   /* UINT64_MAX means no quota */
	_Atomic uint64_t context_bytes; /* memory that one CUDA context takes on this device */
	_Atomic uint64_t depth_ns;      /* most work in flight under LEASE_GO */
	/* most work in flight under LEASE_FREE while the tenant is alone on the device */
	_Atomic uint64_t free_depth_ns;
	/* If one work item alone fills depth_ns, a second one may start while less than long_work_ns is in flight. */
	_Atomic uint64_t long_work_ns;
	/* always 0, because an older library reads another field here */
	uint64_t reserved;
	/* After this long without work, a process with a lease rings the doorbell, so that another tenant can get the lease. */
	_Atomic uint64_t idle_ns;
	/* memory of processes that have not yet mapped the files of a restarted daemon; counts as used */
	_Atomic uint64_t unslotted_bytes;
	/*
	 * Swapping: the most memory that the tenant may use on the device; UINT64_MAX means no bound. The daemon lowers it
	 * before it orders another tenant's memory back from the arena, to keep room for that memory.
	 */
	_Atomic uint64_t swap_bound_bytes;
	/*
	 * LEASE_PACED: work may start while the tenant's processes have spent fewer tokens than `granted`
	 * (library/launch/pace.h). Spending may exceed the grant, so that a kernel that costs more than any grant can run too.
	 */
	_Atomic uint64_t granted; /* seq_cst; sum of all grants; the daemon may reduce it */
	/* futex word, seq_cst; incremented after each change of `granted` */
	_Atomic uint32_t grant_change;
	/*
	 * Under LEASE_GO: 1 + the slot of the process that may run; the tenant's other processes wait. 0 if all may run.
	 * seq_cst; each change is followed by a change of the lease word.
	 */
	_Atomic uint32_t turn;
	/*
	 * If region_control.memory_waits is 1, the tenant may use at most this much, even if its quota is larger. 0 if nothing
	 * is granted yet. A process asks for more by struct region_want.
	 */
	_Atomic uint64_t memory_granted_bytes; /* seq_cst */
	/* futex word, seq_cst; incremented after each answer to a struct region_want */
	_Atomic uint32_t memory_grant_change;
	/* an enum region_sync_point; does not affect the count region_bell.sync_points */
	_Atomic uint32_t sync_point_wanted;
};

struct region_control {
	uint32_t magic;
	uint32_t version;
	uint32_t size_bytes;
	uint32_t device_count;
	uint64_t epoch; /* differs for each start of a daemon */
	/* for the library's log; the daemon may change the name */
	char tenant_name[REGION_NAME_MAX];
	/* incremented at least 10 times a second; once a second while no tenant works and all processes have heeds_owner */
	_Atomic uint32_t heartbeat;
	/*
	 * 1 while a restarted daemon waits until the tenant's processes have mapped its new files. New allocations wait for at
	 * most 1.2 s, because the slots do not yet show all memory that the tenant uses.
	 */
	_Atomic uint32_t adopting;
	/* only slots below this number may be in use */
	_Atomic uint32_t slot_limit;
	_Atomic uint32_t census; /* seq_cst; number of NVML queries, incremented before each */
	/* 1 if an allocation beyond memory_granted_bytes waits instead of failing; set before the first process joins */
	_Atomic uint32_t memory_waits;
	uint32_t reserved;               /* always 0; an older library reads another field here */
	_Atomic uint64_t memory_wait_ns; /* longest wait for more granted memory; 0: no limit */
	/*
	 * Swapping: `swap` is one order for all devices. arena_bytes is the size of the arena file: fixed, and 0 if the tenant
	 * is not swappable. arena_ready_bytes is the part of the file that is backed by memory; it only grows.
	 */
	_Atomic uint32_t swap; /* futex word, seq_cst; see enum swap_order */
	uint64_t arena_bytes;
	_Atomic uint64_t arena_ready_bytes;
	/*
	 * 1 if the memory for which the tenant's allocations wait will become free after other tenants' turns. If 0, also from
	 * an older daemon, the library gives up after a while.
	 */
	_Atomic uint32_t swap_hope;
	/* 1 if, on one of the tenant's GPUs, the quotas of all swappable tenants exceed the memory for these tenants */
	_Atomic uint32_t swap_is_likely;
	/* Bit i is set if device i is a MIG instance. Fixed; 0 from an older daemon. */
	uint32_t instances;
	/* Whether the processes record a trace, and by which clock: trace_ring.h. 0 from an older daemon. */
	_Atomic uint32_t trace;
	/*
	 * If the tenant shares the device by space (MPS): the largest share of the device's SMs that its work can use. A token
	 * of LEASE_PACED is then one nanosecond of predicted work. Without MPS, this field is 0, and a token is one thread of a
	 * kernel (library/launch/pace.h).
	 */
	_Atomic uint16_t space_pct_x100[REGION_MAX_DEVICES];
	/* The element REGION_HOST, for page-locked host memory, uses only quota_bytes. */
	_Alignas(64) struct region_control_device device[REGION_MAX_DEVICES + 1];
	/*
	 * seq_cst; a robust futex that the daemon's main thread holds. When that thread ends, the kernel sets FUTEX_OWNER_DIED;
	 * the daemon sets that bit itself before an orderly end. 0 from an older daemon.
	 */
	_Atomic uint32_t owner;
};

/*
 * One process on one device. Written by the process, but the daemon zeroes the slot of a dead process.
 *
 * Memory (library/memory/ledger.h): an allocation is first tentative, then used. Some memory is allocated by no call (code,
 * local memory, memory that libraries keep), so only NVML knows of it. The daemon queries NVML and writes the excess over
 * used_bytes to unnamed_bytes. It leaves out memory that was allocated during the query, which census_peak_bytes shows.
 *
 * Work (library/launch/gate.h): the process raises `launching` before it reads the lease word. So after the daemon has written
 * LEASE_CLOSING, `launching` counts each thread that still acts on the earlier lease.
 */
struct region_slot_device {
	_Alignas(64) _Atomic uint64_t used_bytes; /* seq_cst */
	_Atomic uint64_t tentative_bytes; /* seq_cst; the allocation that is being decided, or 0 */
	_Atomic uint64_t context_used_bytes; /* part of used_bytes that belongs to contexts */
	_Atomic uint64_t peak_bytes;
	_Atomic uint64_t denied; /* allocations refused because of the quota */
	/* written by the daemon: memory that NVML shows beyond used_bytes */
	_Atomic uint64_t unnamed_bytes;
	/* highest used_bytes since the NVML query whose number is `census` */
	_Atomic uint64_t census_peak_bytes;
	/* the process's copy of region_control.census, taken after each rise of used_bytes */
	_Atomic uint32_t census;
	/* 1 if NVML may show less memory for the process than used_bytes; read only by an older daemon */
	_Atomic uint32_t unsure;

	/* seq_cst; threads between the gate and the driver */
	_Alignas(64) _Atomic uint32_t launching;
	/* seq_cst; threads that the gate holds */
	_Atomic uint32_t waiting;
	_Atomic uint32_t busy; /* seq_cst; 1 while work is known to be in flight */
	/* waits for in-flight work that were given up because no work ended */
	_Atomic uint32_t stuck;
	_Atomic uint64_t inflight_ns; /* predicted length of the work in flight */
	_Atomic uint64_t busy_ns;     /* total time with work in flight so far */
	_Atomic uint64_t launches;    /* work items handed to the driver so far */
	_Atomic uint64_t waited_ns;   /* total time for which the gate held threads */
	/*
	 * Written by the daemon: the growth of busy_ns, as an exponentially decaying sum. The library's NVML hooks divide
	 * got_1s_pct_x100 among the processes in proportion to this field.
	 */
	_Atomic uint32_t recent_us;
	/* the process's idle time when it last rang the doorbell; 0 while its work is in flight */
	_Atomic uint32_t idle_us;
	/* memory measured beyond used_bytes around a call (measured.h), until the daemon adds it to unnamed_bytes */
	_Atomic uint64_t fresh_bytes;
};

/* A process's memory on one device that can be moved to the arena. Written by the process. */
struct region_slot_swap {
	_Atomic uint64_t movable_bytes; /* movable memory, on the device or in the arena */
	_Atomic uint64_t out_bytes;     /* part of movable_bytes in the arena; counts as used */
	/* movable memory that stays on the device because other processes share it */
	_Atomic uint64_t kept_bytes;
	_Atomic uint64_t wanted_bytes; /* needed by allocations that wait for device memory */
};

enum region_slot_state {
	SLOT_EMPTY = 0,
	SLOT_LIVE = 1,
};

struct region_slot {
	/* enum region_slot_state; written by the daemon */
	_Alignas(64) _Atomic uint32_t state;
	_Atomic uint32_t generation; /* written by the daemon: how often this slot was assigned */
	_Atomic int32_t pid; /* written by the daemon: the pid in the daemon's pid namespace */
	/* written by the process: getpid(), for the tenant's other processes */
	_Atomic int32_t own_pid;
	/* written by the process: 1 if it copied its usage from the report of an earlier daemon */
	_Atomic uint32_t migrated;
	/* Swapping: all written by the process. */
	_Atomic uint32_t swap_state; /* enum swap_state */
	/* the last order, a value of region_control.swap, that the process carried out or gave up */
	_Atomic uint32_t swap_word;
	_Atomic uint32_t swap_failed;   /* failed moves; an order that was given up counts once */
	_Atomic uint64_t swap_moved_ns; /* duration of the last complete move */
	_Atomic uint64_t swap_progress_bytes; /* total bytes moved so far; grows during a move */
	/* written by the process: 1 if its library reads region_control.owner; 0 from an older library */
	_Atomic uint32_t heeds_owner;
	/* written by the process: MiB that the current move has copied; 0 from an older library */
	_Atomic uint32_t swap_copied_mib;
	struct region_slot_swap swap[REGION_MAX_DEVICES];
	/* the element REGION_HOST uses only the memory fields */
	struct region_slot_device device[REGION_MAX_DEVICES + 1];
};

/* Memory that several processes of the tenant share, and the slot that is charged for it. Written by processes. */
struct region_export {
	/* identifies the memory (library/memory/exports.h); 0 if the entry was never used */
	_Atomic uint64_t key;
	_Atomic uint64_t owner; /* seq_cst; charged slot: generation << 32 | (slot + 1); 0: none */
};

/* Tokens that the tenant's processes have spent on one device under LEASE_PACED. */
struct region_spent {
	_Alignas(64) _Atomic uint64_t tokens; /* seq_cst */
	/* Predicted duration of the paid work, if tokens are nanoseconds; 0 from an older library. */
	_Atomic uint64_t work_ns;
	/* The part of work_ns for kernels whose predicted length is a guess, as they rarely ran alone on the device. */
	_Atomic uint64_t untried_ns;
	uint64_t reserved; /* an older library writes here; the daemon does not read it */
};

/*
 * The doorbell, by which the tenant tells the daemon to read the slots. The daemon sleeps on the futex `ring_count`.
 * library/state/bell.h says when to ring. If a tenant rings too often or too rarely, the daemon polls its slots instead
 * (daemon/arbitrate/doorbell.h).
 */
struct region_bell {
	_Alignas(64) _Atomic uint32_t ring_count; /* futex word, seq_cst; counts the rings */
	/* Number of sync points (enum region_sync_point). */
	_Atomic uint32_t sync_points;
	/* A part of busy_ns: from each lease's start until 1 ms of work or half of depth_ns is in flight. */
	_Atomic uint64_t ramp_ns;
	uint64_t reserved; /* an older library writes here; the daemon does not read it */
	/* Total time from each sync point to the next launch, without the time that the gate held that launch. */
	_Atomic uint64_t gap_ns;
	/* The part of busy_ns under leases in which the program is not ahead of the GPU. 0 from an older library. */
	_Atomic uint64_t behind_ns;
};

/*
 * Memory for which one process waits on one device. The process writes `bytes`, increments `ask` and rings the doorbell. The
 * daemon raises memory_granted_bytes if possible, then sets `answered` to the value of `ask`. 0 bytes cancel the request.
 */
struct region_want {
	_Atomic uint64_t bytes; /* memory needed beyond what the tenant holds */
	_Atomic uint32_t ask;   /* seq_cst; number of requests so far */
	/* seq_cst; written by the daemon: the `ask` that was answered last */
	_Atomic uint32_t answered;
};

/* Which process owns one chunk of the arena. Written by processes. */
struct region_arena_chunk {
	_Atomic uint64_t owner; /* seq_cst; encoded like region_export.owner */
};

struct region_report {
	uint32_t magic;
	uint32_t version;
	uint32_t size_bytes; /* REGION_REPORT_BYTES; an older library accepts no other value */
	/* 1 if the file has `steps`; 0 from an older daemon, whose file ends before that field */
	uint32_t has_steps;
	struct region_slot slot[REGION_MAX_SLOTS];
	struct region_export export[REGION_MAX_EXPORTS];
	struct region_spent spent[REGION_MAX_DEVICES];
	struct region_bell bell[REGION_MAX_DEVICES];
	struct region_want want[REGION_MAX_SLOTS][REGION_MAX_DEVICES];
	struct region_arena_chunk arena[REGION_ARENA_CHUNKS];
	struct step_counts steps[REGION_MAX_DEVICES]; /* read and write only if has_steps is 1 */
};

#define REGION_REPORT_BYTES offsetof(struct region_report, steps)

_Static_assert(sizeof(_Atomic uint64_t) == 8 && sizeof(_Atomic uint32_t) == 4, "lock-free layout");
_Static_assert(offsetof(struct region_control, device) == 192,
	       "fields added later lie in former padding");
_Static_assert(sizeof(struct region_control) == 2560, "`owner` lies in former padding");
_Static_assert(sizeof(struct region_slot_device) == 128, "two cache lines");
_Static_assert(REGION_REPORT_BYTES == 3180608, "the file of a daemon without `steps`");
_Static_assert(sizeof(struct region_slot) ==
		       64 + 32 * REGION_MAX_DEVICES + 128 * (REGION_MAX_DEVICES + 1),
	       "slot layout");

/* True if the daemon that created the region has ended. False for a daemon that does not know `owner`. Thread safe. */
static inline bool region_has_lost_owner(const struct region_control *c)
{
	return atomic_load(&c->owner) & FUTEX_OWNER_DIED;
}

/* True if the mapped file has the version and the size that this build uses. Pure; thread safe. */
static inline bool region_control_is_valid(const struct region_control *c)
{
	return c->magic == REGION_MAGIC && c->version == REGION_VERSION &&
	       c->size_bytes == sizeof(*c) && c->device_count <= REGION_MAX_DEVICES;
}

static inline bool region_report_is_valid(const struct region_report *r)
{
	return r->magic == REGION_MAGIC && r->version == REGION_VERSION &&
	       r->size_bytes == REGION_REPORT_BYTES;
}
