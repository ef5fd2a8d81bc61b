/*
 * The region: the memory that one tenant shares with the daemon.
 *
 *   control  One file per tenant, written only by the daemon. The tenant maps it read-only; the memfd has F_SEAL_FUTURE_WRITE,
 *            so it cannot be mapped writable.
 *   report   One file per tenant, written by the tenant's processes, each in its own slot. It is sealed against shrinking and
 *            growing, so that no tenant can make the daemon fault on it. The daemon trusts nothing in it: it checks every
 *            value where it reads it.
 *
 * A daemon that adopts a tenant makes both files anew (it can't write to a control file that another daemon sealed). The
 * library then maps the new files and uses them instead of the old ones (library/process.c).
 *
 * No field holds a point in time, since clocks differ across time namespaces. Durations are in nanoseconds. All integers are
 * native-endian; both sides run on the same machine.
 *
 * The writer and the memory order are stated beside each field: D is the daemon, T is the slot's own process. Fields on which
 * two sides base decisions are "seq_cst"; all others are relaxed.
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
#define REGION_MAX_SLOTS 1024    /* processes of one tenant at the same time */
#define REGION_MAX_EXPORTS 4096  /* see library/memory/exports.h */
#define REGION_NAME_MAX 64       /* bytes of a tenant's name, including the NUL */
#define REGION_ARENA_CHUNKS 4096 /* parts of a swap arena, see library/swap/swap_arena.h */
/* Page-locked host memory is accounted for as one more device. */
#define REGION_HOST REGION_MAX_DEVICES

/*
 * The lease word: the state in the low 8 bits, and a change counter above, so that a waiter on the futex never misses a change
 * that was reverted at once.
 */
enum lease_state {
	LEASE_STOP = 0,    /* wait */
	LEASE_CLOSING = 1, /* start nothing new, let running work finish, and report when it has */
	LEASE_GO = 2,      /* run, with work in flight bounded by depth_ns */
	LEASE_FREE = 3, /* run alone: in-flight work is bounded only by free_depth_ns, and counted coarsely */
	/* run at the same time as others: each launch pays its cost, see `granted` */
	LEASE_PACED = 4,
};
#define LEASE_STATE_MASK 0xffU
#define LEASE_SEQUENCE_STEP 0x100U

static inline enum lease_state lease_state_of(uint32_t word)
{
	return (enum lease_state)(word & LEASE_STATE_MASK);
}

/* Whether and when the library rings the doorbell for a tenant's sync points (library/launch/sync_point.h). */
enum region_sync_point {
	SYNC_POINT_UNTOLD,
	SYNC_POINT_RUNG, /* at each sync point */
	/*
	 * At each sync point, and when work begins after the device was idle. At a sync point after which nothing is in flight,
	 * the library also clears `busy` in the slot.
	 */
	SYNC_POINT_ENDS_USE,
};

/* The swap word: the daemon's order in the low 8 bits, and a change counter above, as in a lease word. */
enum swap_order {
	SWAP_ORDER_IN = 0, /* be on the card */
	SWAP_ORDER_OUT =
		1, /* leave the card: copy all movable memory to the arena, and free it on the card */
	/*
	 * The daemon has locked the process's driver calls, or is about to (daemon/memory/checkpoint). The library makes no
	 * driver calls of its own, and confirms that in swap_word. The program's calls wait in the driver.
	 */
	SWAP_ORDER_PARKED = 2,
};
#define SWAP_ORDER_MASK 0xffU
#define SWAP_SEQUENCE_STEP 0x100U

static inline enum swap_order swap_order_of(uint32_t word)
{
	return (enum swap_order)(word & SWAP_ORDER_MASK);
}

/* The place of a process's swappable memory (library/swap/swap.h). */
enum swap_state {
	SWAP_NONE = 0, /* no swappable memory: the tenant is not swappable, or swapping has not begun */
	SWAP_IN = 1, /* on the card */
	SWAP_LEAVING = 2,
	SWAP_OUT = 3, /* in the arena; the process's calls wait */
	SWAP_RETURNING = 4,
	SWAP_SHORT = 5, /* in the arena, and the card has no room; the process's calls fail with an error */
};

/* One device of the tenant. Written by D. */
struct region_control_device {
	uint8_t uuid[16];                /* of the card or MIG instance; fixed */
	_Atomic uint32_t lease;          /* futex word, seq_cst; see enum lease_state */
	_Atomic uint32_t cores_pct_x100; /* guaranteed share, hundredths of a percent; 0 if none */
	_Atomic uint32_t limit_pct_x100; /* highest allowed share; 10000 means no cap */
	/* share of the card's time charged to the tenant in the last second */
	_Atomic uint32_t got_1s_pct_x100;
	_Atomic uint64_t quota_bytes;   /* memory quota; UINT64_MAX means no quota */
	_Atomic uint64_t context_bytes; /* memory that one CUDA context takes on this card */
	_Atomic uint64_t depth_ns;      /* how much work may be in flight under LEASE_GO */
	_Atomic uint64_t free_depth_ns; /* how much work may be in flight under LEASE_FREE */
	/* Under LEASE_GO a second work item may start beyond depth_ns, but only while less than long_work_ns is in flight. */
	_Atomic uint64_t long_work_ns;
	/* an older library reads here how much work it may queue; 0 means none */
	uint64_t reserved;
	/*
	 * A lease holder that is idle for this long rings the doorbell (region_bell), so that D can pass the lease on. D adapts
	 * the value.
	 */
	_Atomic uint64_t idle_ns;
	_Atomic uint64_t
		unslotted_bytes; /* memory held by the tenant outside any live slot; counts as used */
	/*
	 * Swapping: allocations must not bring the tenant's use of the card above this value; UINT64_MAX means no bound. The
	 * rest of the card is reserved for a tenant whose memory returns to it. Written before the swap order that makes that
	 * tenant return.
	 */
	_Atomic uint64_t swap_bound_bytes;
	/*
	 * LEASE_PACED: work may start while the tenant's processes have spent fewer tokens than `granted`
	 * (library/launch/pace.h). The balance may become negative, so that a kernel that costs more than any grant can run
	 * too.
	 */
	_Atomic uint64_t
		granted; /* seq_cst; total tokens so far; may be reduced for a tenant that shares space */
	_Atomic uint32_t
		grant_change; /* futex word, seq_cst; incremented after each change of `granted` */
	/*
	 * Under LEASE_GO, the tenant's process whose turn it is, as slot + 1; other processes wait as in LEASE_STOP. 0 means
	 * that all may run. seq_cst; each change is followed by a change of the lease word.
	 */
	_Atomic uint32_t turn;
	/*
	 * For a tenant that waits for memory (memory_waits): used memory must stay below this value as well as below the quota.
	 * A process asks for more by region_want. 0 if nothing is granted yet.
	 */
	_Atomic uint64_t memory_granted_bytes; /* seq_cst */
	/* futex word, seq_cst; incremented after each answer to a region_want */
	_Atomic uint32_t memory_grant_change;
	/* enum region_sync_point. Whatever it says, sync points are counted in region_bell.sync_points. */
	_Atomic uint32_t sync_point_wanted;
};

struct region_control {
	uint32_t magic;
	uint32_t version;
	uint32_t size_bytes; /* sizeof(struct region_control) */
	uint32_t device_count;
	uint64_t epoch; /* a number that no other daemon has */
	/* for the library's log; D changes it if it renames the claim */
	char tenant_name[REGION_NAME_MAX];
	/*
	 * Incremented at least 10 times a second while the daemon lives, but only once a second while no tenant has work or
	 * demand and all processes read `owner`.
	 */
	_Atomic uint32_t heartbeat;
	/*
	 * 1 while a restarted daemon still waits for processes of this tenant to move to its files. New reservations wait
	 * meanwhile, up to a second, since a sum over the slots is incomplete until all have moved.
	 */
	_Atomic uint32_t adopting;
	/* only slots [0, slot_limit) may be in use: sums over the slots end there */
	_Atomic uint32_t slot_limit;
	_Atomic uint32_t census; /* seq_cst; number of D's NVML queries, incremented before each */
	_Atomic uint32_t
		memory_waits; /* 1 if allocations wait for a grant; set before the first process joins */
	uint32_t reserved;               /* 0; an older library reads another field here */
	_Atomic uint64_t memory_wait_ns; /* longest wait for a grant; 0 means no limit */
	/*
	 * Swapping, for all devices together. arena_bytes is the size of the swap arena, a third file: fixed, and 0 if the
	 * tenant is not swappable. arena_ready_bytes is how much of the arena is backed by memory; it only grows.
	 */
	_Atomic uint32_t swap; /* futex word, seq_cst; see enum swap_order */
	uint64_t arena_bytes;
	_Atomic uint64_t arena_ready_bytes;
	/*
	 * 1 if the memory that the tenant's allocations wait for will be free once others have had their turn, so the
	 * allocations keep waiting. 0 if not or unknown; then the library gives up after a while. Always 0 if the daemon does
	 * not know this field.
	 */
	_Atomic uint32_t swap_hope;
	/* 1 if the card is too small for all tenants that may swap there, so this tenant will have to leave it. */
	_Atomic uint32_t swap_is_likely;
	/*
	 * Bit i is set if device i is a MIG instance, whose UUID starts with "MIG-". Fixed; 0 if the daemon does not know this
	 * field.
	 */
	uint32_t instances;
	/* Whether the processes record a trace, and by which clock: trace_ring.h. 0 if the daemon does not know this field. */
	_Atomic uint32_t trace;
	/*
	 * For each device, the most of its SMs that the tenant's work can use, in hundredths of a percent. 0 if the tenant does
	 * not share space with others, or if the daemon does not know this field. If it is 0, tokens of LEASE_PACED are
	 * threads; otherwise they are nanoseconds of the whole card.
	 */
	_Atomic uint16_t space_pct_x100[REGION_MAX_DEVICES];
	/* The entry [REGION_HOST], for page-locked host memory, has only quota_bytes. */
	_Alignas(64) struct region_control_device device[REGION_MAX_DEVICES + 1];
	/*
	 * A robust futex that D's main thread holds while it lives. When that thread ends in any way, the kernel sets
	 * FUTEX_OWNER_DIED in it; D sets the bit itself before an orderly end. seq_cst. 0 if the daemon does not know this
	 * field.
	 */
	_Atomic uint32_t owner;
};

/*
 * One process on one device. Written by T, except that D zeroes the slot of a dead process.
 *
 * Memory (see ledger.h): a reservation is first tentative, then used. Memory that no call names (code, local memory, memory
 * that libraries keep) is found by D by asking NVML, and written here as unnamed. So that D does not count an allocation made
 * during the NVML query as unnamed, T reports the peak of used_bytes during the query. Until D's next query, memory that T
 * itself measured around a call (see measured.h) counts as fresh.
 *
 * Work (see gate.h): `launching` is raised before the lease word is read. So D, having written CLOSING, sees every thread that
 * did not see CLOSING.
 */
struct region_slot_device {
	_Alignas(64) _Atomic uint64_t used_bytes; /* seq_cst */
	_Atomic uint64_t tentative_bytes;         /* seq_cst; the reservation being decided, or 0 */
	_Atomic uint64_t context_used_bytes;      /* part of used_bytes that belongs to contexts */
	_Atomic uint64_t peak_bytes;              /* highest used_bytes */
	_Atomic uint64_t denied;        /* number of allocations refused because of the quota */
	_Atomic uint64_t unnamed_bytes; /* written by D: bytes that NVML shows beyond used_bytes */
	_Atomic uint64_t
		census_peak_bytes; /* highest used_bytes since the NVML query of number `census` */
	/* T's copy of region_control.census, taken after each rise of used_bytes */
	_Atomic uint32_t census;
	/* 1 once NVML may show less memory for the process than it is charged */
	_Atomic uint32_t unsure;

	/* seq_cst; number of threads between the gate and the driver */
	_Alignas(64) _Atomic uint32_t launching;
	/* seq_cst; number of threads held at the gate: the process's demand */
	_Atomic uint32_t waiting;
	_Atomic uint32_t busy; /* seq_cst; 1 while work is known to be in flight */
	/* number of waits at the depth bound that were given up because no work ended */
	_Atomic uint32_t stuck;
	_Atomic uint64_t inflight_ns; /* predicted length of the work in flight */
	_Atomic uint64_t busy_ns; /* total time with work in flight, up to the end of the last work */
	_Atomic uint64_t launches;  /* number of work items handed to the driver so far */
	_Atomic uint64_t waited_ns; /* total time that threads were held at the gate */
	/*
	 * Written by D: a sum of the time added to busy_ns, in which older time fades. The NVML that the tenant sees divides
	 * got_1s_pct_x100 among the processes in this proportion.
	 */
	_Atomic uint32_t recent_us;
	/* how long the process had been idle when it last rang the doorbell for being idle; 0 if it has work */
	_Atomic uint32_t idle_us;
	_Atomic uint64_t
		fresh_bytes; /* written by T: memory measured beyond used_bytes; D moves it to unnamed_bytes */
};

/* How much of a process's memory on one device can be moved to the arena. Written by T. */
struct region_slot_swap {
	_Atomic uint64_t movable_bytes; /* movable memory, on the device or in the arena */
	_Atomic uint64_t out_bytes; /* part of movable_bytes that is in the arena; still counts as used */
	/* movable memory that stays on the device, because it is shared with other processes */
	_Atomic uint64_t kept_bytes;
	_Atomic uint64_t wanted_bytes; /* needed by allocations that wait because the device is full */
};

enum region_slot_state {
	SLOT_EMPTY = 0,
	SLOT_LIVE = 1,
};

struct region_slot {
	/* enum region_slot_state; written by D when it assigns the slot, and when the process dies */
	_Alignas(64) _Atomic uint32_t state;
	_Atomic uint32_t generation; /* number of assignments of this slot; written by D */
	_Atomic int32_t pid; /* the process's pid in the daemon's pid namespace; written by D */
	/* written by T: getpid() in the process, read by the tenant's other processes */
	_Atomic int32_t own_pid;
	/* written by T: 1 if usage was copied here from the report of an earlier daemon */
	_Atomic uint32_t migrated;
	/* Swapping; all written by T. */
	_Atomic uint32_t swap_state; /* enum swap_state */
	/* the last value of region_control.swap that was carried out or abandoned */
	_Atomic uint32_t swap_word;
	_Atomic uint32_t swap_failed;   /* number of failed moves; an abandoned order counts once */
	_Atomic uint64_t swap_moved_ns; /* duration of the last complete move */
	_Atomic uint64_t swap_progress_bytes; /* total bytes moved so far; grows during a move */
	_Atomic uint32_t
		heeds_owner; /* written by T: 1 if this library reads `owner`; 0 for an older library */
	/* written by T: MiB of the current move that are already copied; 0 for an older library */
	_Atomic uint32_t swap_copied_mib;
	struct region_slot_swap swap[REGION_MAX_DEVICES];
	/* in the entry [REGION_HOST] only the memory fields are used */
	struct region_slot_device device[REGION_MAX_DEVICES + 1];
};

/* Memory that several processes of the tenant hold, and the slot that is charged for it. Written only by T. */
struct region_export {
	/* identifies the memory (library/memory/exports.h); 0 if the entry was never used */
	_Atomic uint64_t key;
	_Atomic uint64_t owner; /* seq_cst; generation << 32 | slot + 1; 0 if nobody is charged */
};

/* The tokens that all processes of the tenant have spent on one device under LEASE_PACED. Written only by T. */
struct region_spent {
	_Alignas(64) _Atomic uint64_t tokens; /* seq_cst */
	/* Predicted duration of all work that was paid for, if tokens are nanoseconds; 0 from an older library. */
	_Atomic uint64_t work_ns;
	/* The part of work_ns that is only a guess or an upper bound, because the work was hardly ever measured alone. */
	_Atomic uint64_t untried_ns;
	uint64_t reserved; /* an older library has an unused counter here */
};

/*
 * The doorbell: the tenant tells D to look at the slots. D sleeps on the `rung` of each tenant for which it waits. A ring is
 * only a hint that the slots have changed: D also looks at them periodically, and ignores a tenant that rings too often
 * (library/state/bell.h says when to ring, daemon/arbitrate/bell.h which rings count).
 */
struct region_bell {
	_Alignas(64) _Atomic uint32_t rung; /* futex word, seq_cst; incremented at each ring */
	/* Number of sync points: how often a thread has waited for everything it launched, as at the end of a step. */
	_Atomic uint32_t sync_points;
	/* Part of busy_ns: the time from the start of each lease until 1 ms of work, or half of depth_ns, was in flight. */
	_Atomic uint64_t ramp_ns;
	/*
	 * Total time in which threads worked between sync points: from one sync point to the wait for the next, without waits
	 * at the gate.
	 */
	_Atomic uint64_t thread_ns;
};

/*
 * The memory for which one process waits on one device, if its tenant was granted less than its quota. T writes `bytes`,
 * increments `ask` and rings. D decides, raises the grant if possible, and then sets `answered` to the value of `ask`. A
 * request with 0 bytes cancels the previous one.
 */
struct region_want {
	_Atomic uint64_t bytes;    /* T; memory needed beyond what the tenant holds; 0 if none */
	_Atomic uint32_t ask;      /* T; seq_cst; number of requests so far */
	_Atomic uint32_t answered; /* D; seq_cst; value of `ask` that was answered last */
};

/* The owner of one part of the swap arena. Written only by T. */
struct region_arena_chunk {
	_Atomic uint64_t owner; /* seq_cst; as in region_export */
};

struct region_report {
	uint32_t magic;
	uint32_t version;
	uint32_t size_bytes; /* REGION_REPORT_BYTES; an older library accepts no other value */
	/* 1 if the file has `steps`; 0 if the daemon does not know `steps`, and the file ends before that field */
	uint32_t has_steps;
	struct region_slot slot[REGION_MAX_SLOTS];
	struct region_export export[REGION_MAX_EXPORTS];
	struct region_spent spent[REGION_MAX_DEVICES];
	struct region_bell bell[REGION_MAX_DEVICES];
	struct region_want want[REGION_MAX_SLOTS][REGION_MAX_DEVICES];
	struct region_arena_chunk arena[REGION_ARENA_CHUNKS];
	struct step_counts steps[REGION_MAX_DEVICES]; /* T; do not access unless has_steps is 1 */
};

#define REGION_REPORT_BYTES offsetof(struct region_report, steps)

_Static_assert(sizeof(_Atomic uint64_t) == 8 && sizeof(_Atomic uint32_t) == 4, "lock-free layout");
_Static_assert(offsetof(struct region_control, device) == 192,
	       "what was added is where nothing was");
_Static_assert(sizeof(struct region_control) == 2560, "nor is it larger for what came behind");
_Static_assert(sizeof(struct region_slot_device) == 128, "two cache lines");
_Static_assert(REGION_REPORT_BYTES == 3180608, "the file of a daemon without `steps`");
_Static_assert(sizeof(struct region_slot) ==
		       64 + 32 * REGION_MAX_DEVICES + 128 * (REGION_MAX_DEVICES + 1),
	       "slot layout");

/* True if the daemon that made the region has ended. Returns false also if that daemon does not know `owner`. Thread safe. */
static inline bool region_has_lost_owner(const struct region_control *c)
{
	return atomic_load(&c->owner) & FUTEX_OWNER_DIED;
}

/* True if a mapped control or report file has a layout that this build can use. Pure; thread safe. */
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
