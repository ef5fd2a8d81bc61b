/*
 * The region: the memory that one tenant shares with the daemon.
 *
 *   control  one file per tenant, written by the daemon alone. The tenant maps it read-only; the
 *            memfd carries F_SEAL_FUTURE_WRITE, so no writable map can be had from it.
 *   report   one file per tenant, written by the tenant's processes, each in its own slot. Sealed
 *            against shrinking and growing, so that no tenant can make the daemon fault on it.
 *            The daemon believes nothing in it: every value is checked where it is read.
 *
 * Both are made anew by each daemon that adopts a tenant (a sealed control file can't be written by
 * a second daemon), and mapped by the library over the old addresses.
 *
 * Nothing here holds a point in time: clocks differ across time namespaces. Durations are in
 * nanoseconds. All integers are native-endian; the two sides share a machine.
 *
 * Writers and order of each field are stated beside it. D = daemon, T = the slot's own process.
 * "seq_cst" marks the words that two sides decide on; everything else is relaxed.
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
#define REGION_MAX_SLOTS 1024    /* processes of one tenant at a time */
#define REGION_MAX_EXPORTS 4096  /* see library/memory/exports.h */
#define REGION_NAME_MAX 64       /* bytes of a tenant's name, the final NUL included */
#define REGION_ARENA_CHUNKS 4096 /* parts of a swap arena, see library/swap/swap_arena.h */
/* Page-locked host memory is counted as if it were on one more device. */
#define REGION_HOST REGION_MAX_DEVICES

/*
 * The lease word: state in the low 8 bits, a change counter above them, so that a waiter on the
 * futex never misses a change that came and went.
 */
enum lease_state {
	LEASE_STOP = 0,    /* wait */
	LEASE_CLOSING = 1, /* start nothing new, let what runs end, report when it has */
	LEASE_GO = 2,      /* run, with work in flight bounded by depth_ns */
	LEASE_FREE = 3,    /* run alone: bounded by free_depth_ns only, counted coarsely */
	LEASE_PACED = 4,   /* run beside others: each launch pays its cost, see granted */
};
#define LEASE_STATE_MASK 0xffU
#define LEASE_SEQUENCE_STEP 0x100U

static inline enum lease_state lease_state_of(uint32_t word)
{
	return (enum lease_state)(word & LEASE_STATE_MASK);
}

/* The steps of which a tenant is to tell the daemon. */
enum region_sync_point {
	SYNC_POINT_UNTOLD,
	SYNC_POINT_RUNG, /* the end of one is rung for */
	SYNC_POINT_ENDS_USE, /* the beginning too; and from the end on the slot does not say busy, if nothing is in flight */
};

/* The swap word: what D asks for in the low 8 bits, a change counter above them, as in a lease word. */
enum swap_order {
	SWAP_ORDER_IN = 0,  /* be on the card */
	SWAP_ORDER_OUT = 1, /* leave it: copy what can be moved to the arena, give its memory back */
	/*
	 * The driver is about to be locked under the process, or is (daemon/memory/checkpoint): the library makes no
	 * calls of its own, and says so by swap_word. Its program's calls wait in the driver.
	 */
	SWAP_ORDER_PARKED = 2,
};
#define SWAP_ORDER_MASK 0xffU
#define SWAP_SEQUENCE_STEP 0x100U

static inline enum swap_order swap_order_of(uint32_t word)
{
	return (enum swap_order)(word & SWAP_ORDER_MASK);
}

/* Where the swappable memory of a process is (library/swap/swap.h). */
enum swap_state {
	SWAP_NONE = 0, /* it has none: not a swappable tenant's, or not begun */
	SWAP_IN = 1,   /* on the card */
	SWAP_LEAVING = 2,
	SWAP_OUT = 3, /* in the arena: its calls wait */
	SWAP_RETURNING = 4,
	SWAP_SHORT = 5, /* in the arena, and the card has no room: its calls are told so */
};

/* One device as the tenant sees it. Written by D. */
struct region_control_device {
	uint8_t uuid[16];                 /* of the card or MIG instance; fixed */
	_Atomic uint32_t lease;           /* futex word, seq_cst; see above */
	_Atomic uint32_t cores_pct_x100;  /* guaranteed share, hundredths of a percent; 0: none */
	_Atomic uint32_t limit_pct_x100;  /* most it may reach; 10000: no cap */
	_Atomic uint32_t got_1s_pct_x100; /* of the card's time, charged in the last second */
	_Atomic uint64_t quota_bytes;     /* memory; UINT64_MAX: no quota */
	_Atomic uint64_t context_bytes;   /* what one CUDA context costs on this card */
	_Atomic uint64_t depth_ns;        /* in-flight bound under LEASE_GO */
	_Atomic uint64_t free_depth_ns;   /* in-flight bound under LEASE_FREE */
	_Atomic uint64_t long_work_ns; /* under LEASE_GO nothing is begun behind an item this long */
	uint64_t reserved;             /* 0: an older library queues no launches */
	_Atomic uint64_t idle_ns; /* present: a lease holder this long idle gives way; see bell */
	_Atomic uint64_t unslotted_bytes; /* held by the tenant, but by no live slot: counts as used */
	/*
	 * Swapping: nothing is allocated beyond so much in use; UINT64_MAX: no such bound. The rest of the
	 * card is kept for somebody who returns. Published before the order that it is kept for.
	 */
	_Atomic uint64_t swap_bound_bytes;
	/*
	 * LEASE_PACED: work passes while the tenant's processes have spent less than was granted, in
	 * tokens (library/launch/pace.h); it may go into debt, so that a kernel dearer than any grant runs too.
	 */
	_Atomic uint64_t granted; /* seq_cst; tokens so far; may be taken back from who shares space */
	_Atomic uint32_t grant_change; /* futex word, seq_cst; counts up after each change of it */
	/*
	 * Under LEASE_GO: whose turn it is of the tenant's processes; the others wait as in LEASE_STOP. 0:
	 * everyone's, else the slot + 1. seq_cst; each change is followed by one of the lease word.
	 */
	_Atomic uint32_t turn;
	/*
	 * Where memory is waited for (memory_waits): what is held stays below this as well as below the
	 * quota; for more a process asks, see region_want. 0: nothing is granted yet.
	 */
	_Atomic uint64_t memory_granted_bytes; /* seq_cst */
	_Atomic uint32_t memory_grant_change; /* futex word, seq_cst; counts up after each answer */
	_Atomic uint32_t
		sync_point_wanted; /* enum region_sync_point; of the steps whose ends are `sync_points` */
};

struct region_control {
	uint32_t magic;
	uint32_t version;
	uint32_t size_bytes; /* sizeof(struct region_control) */
	uint32_t device_count;
	uint64_t epoch; /* differs from one daemon to the next */
	char tenant_name[REGION_NAME_MAX];
	/*
	 * Counts up at least 10 times a second while the daemon lives; once a second where nobody has work or demand
	 * and all processes heed `owner`.
	 */
	_Atomic uint32_t heartbeat;
	/*
	 * 1 while a restarted daemon still waits for processes of this tenant to move over. New
	 * reservations wait (a second at most): until all have moved, a sum over the slots is short.
	 */
	_Atomic uint32_t adopting;
	_Atomic uint32_t slot_limit; /* slots [0, slot_limit) may be in use: bound for sums */
	_Atomic uint32_t census;     /* seq_cst; counts D's looks at what NVML says, before each */
	_Atomic uint32_t memory_waits; /* 1: allocations wait for a grant; set before the first joins */
	uint32_t reserved; /* 0: an older library takes another value for an order to count */
	_Atomic uint64_t memory_wait_ns; /* so long at most; 0: without a limit */
	/*
	 * Swapping, of all devices at once. arena_bytes is fixed, 0: not swappable; the arena is a third
	 * file, of which so much has memory as arena_ready_bytes says, which only grows.
	 */
	_Atomic uint32_t swap; /* futex word, seq_cst; see enum swap_order */
	uint64_t arena_bytes;
	_Atomic uint64_t arena_ready_bytes;
	/*
	 * 1: what the tenant's allocations wait for can be had once others have had their turn, so they wait
	 * on. 0: not, or not known; the library has a patience then. Of a daemon without this, always 0.
	 */
	_Atomic uint32_t swap_hope;
	/* 1: the card is not large enough for all who may swap there, so the tenant will have to leave it. */
	_Atomic uint32_t swap_is_likely;
	/* Bit i: device i is a MIG instance, so that its UUID begins so. Fixed; of a daemon without this, 0. */
	uint32_t instances;
	/* Whether its processes record what they do, and by which clock: trace.h. Of a daemon without this, 0. */
	_Atomic uint32_t trace;
	/*
	 * By device, hundredths of a percent of its SMs. 0: tokens of LEASE_PACED are threads. Else the tenant
	 * shares space with others, its work gets so much of the card at most, and tokens are nanoseconds of the
	 * whole card. Of a daemon without this, 0.
	 */
	_Atomic uint16_t space_pct_x100[REGION_MAX_DEVICES];
	/* Of [REGION_HOST] only quota_bytes means something. */
	_Alignas(64) struct region_control_device device[REGION_MAX_DEVICES + 1];
	/*
	 * A robust futex that D's main thread holds for as long as it lives: having ended that thread in whatever way,
	 * the kernel sets FUTEX_OWNER_DIED in it, and D does before it ends by itself. seq_cst. Of a daemon without
	 * this, 0.
	 */
	_Atomic uint32_t owner;
};

/*
 * One process on one device. Written by T, but for a dead process's slot, which D zeroes.
 *
 * Memory (see ledger.h): a reservation is first tentative, then used. What no call names (code,
 * local memory, what libraries keep) D finds by asking NVML, and writes here as unnamed; so that it
 * takes for such what no moment of the look explains, T says how high used_bytes rose during it. Until
 * D's look what T measured itself around a call (see measured.h) counts, as fresh.
 * Work (see gate.h): launching is raised before the lease word is read, so that D, having written
 * CLOSING, sees every thread that did not see it.
 */
struct region_slot_device {
	_Alignas(64) _Atomic uint64_t used_bytes; /* seq_cst */
	_Atomic uint64_t tentative_bytes;    /* seq_cst; the reservation under decision, or 0 */
	_Atomic uint64_t context_used_bytes; /* the part of used_bytes that is contexts */
	_Atomic uint64_t peak_bytes;         /* highest used_bytes */
	_Atomic uint64_t denied;             /* allocations refused for the quota */
	_Atomic uint64_t unnamed_bytes;      /* D: what NVML shows beyond used_bytes */
	_Atomic uint64_t census_peak_bytes;  /* highest used_bytes since census number ... */
	_Atomic uint32_t census;             /* ... this, read after each rise */
	_Atomic uint32_t unsure; /* 1: NVML may show less than it holds, now or earlier */

	_Alignas(64) _Atomic uint32_t launching; /* seq_cst; threads between gate and driver */
	_Atomic uint32_t waiting;                /* seq_cst; threads held at the gate: demand */
	_Atomic uint32_t busy;        /* seq_cst; 1 while work is in flight, as far as known */
	_Atomic uint32_t stuck;       /* passes that gave up waiting for own progress */
	_Atomic uint64_t inflight_ns; /* predicted length of the work in flight */
	_Atomic uint64_t busy_ns;     /* time with work in flight, up to its last end */
	_Atomic uint64_t launches;    /* work items handed to the driver */
	_Atomic uint64_t waited_ns;   /* time threads were held at the gate */
	_Atomic uint32_t recent_us;   /* D: recent busy_ns, fading; divides got_1s for NVML */
	_Atomic uint32_t idle_us; /* how long it was idle at its last doorbell for that; 0: has work */
	_Atomic uint64_t fresh_bytes; /* T: measured beyond used_bytes; D moves it to unnamed_bytes */
};

/* How much of a process's memory on one device can be moved to the arena. Written by T. */
struct region_slot_swap {
	_Atomic uint64_t movable_bytes; /* on the device or moved off it */
	_Atomic uint64_t out_bytes;     /* of these, moved off; they count as used all the same */
	_Atomic uint64_t kept_bytes;    /* movable, but shared with other processes: they stay */
	_Atomic uint64_t wanted_bytes; /* needed by allocations that wait because the device is full */
};

enum region_slot_state {
	SLOT_EMPTY = 0,
	SLOT_LIVE = 1,
};

struct region_slot {
	_Alignas(64) _Atomic uint32_t state; /* enum region_slot_state: D on assignment, D on death */
	_Atomic uint32_t generation;         /* counts assignments of this slot; D */
	_Atomic int32_t pid;                 /* in the daemon's pid namespace; D */
	_Atomic int32_t own_pid;   /* T: what getpid() says in the process, for its neighbours */
	_Atomic uint32_t migrated; /* T: usage of an earlier daemon's report is copied in */
	/* Swapping; all T's. */
	_Atomic uint32_t swap_state;    /* enum swap_state */
	_Atomic uint32_t swap_word;     /* the order that was last carried out, or given up on */
	_Atomic uint32_t swap_failed;   /* failed moves; an order given up on counts once */
	_Atomic uint64_t swap_moved_ns; /* how long the last whole move took */
	_Atomic uint64_t swap_progress_bytes; /* moved ever: grows while a move goes on */
	_Atomic uint32_t heeds_owner;     /* T: 1: this library reads `owner`; 0: an older one */
	_Atomic uint32_t swap_copied_mib; /* T: of the move under way; of an older library 0 */
	struct region_slot_swap swap[REGION_MAX_DEVICES];
	struct region_slot_device device[REGION_MAX_DEVICES + 1]; /* [REGION_HOST]: memory alone */
};

/* Memory that several processes of the tenant hold, and in which slot it is charged. T alone. */
struct region_export {
	_Atomic uint64_t key;   /* 0: never used */
	_Atomic uint64_t owner; /* seq_cst; generation << 32 | slot + 1; 0: nobody */
};

/* What all processes of the tenant have paid on one device, under LEASE_PACED. T alone. */
struct region_spent {
	_Alignas(64) _Atomic uint64_t tokens; /* seq_cst */
	/* Predicted length of the work paid for, where tokens are nanoseconds; of an older library 0. */
	_Atomic uint64_t work_ns;
	/* Of that, what was hardly timed while nobody else ran: a guess, or a bound from above. */
	_Atomic uint64_t untried_ns;
	uint64_t reserved; /* an older library has a counter here, which nobody reads */
};

/*
 * Where the tenant tells D that a look is due: D sleeps on the words of those that it waits for. A ring
 * is a hint, that what the slots say has changed: D looks at them now and then without one, and listens
 * to nobody who rings too often (library/state/bell.h says when to ring, daemon/arbitrate/bell.h who is believed).
 */
struct region_bell {
	_Alignas(64) _Atomic uint32_t rung; /* futex word, seq_cst; counts up at each ring */
	/* Times that a thread had waited for all that was launched: a program's steps end so. */
	_Atomic uint32_t sync_points;
	/* Of all busy_ns: from the start of each lease until half of the depth was in flight. */
	_Atomic uint64_t ramp_ns;
	/* From one sync point until the wait that ended with the next, less the waits at the gate: what a thread did on the CPU. */
	_Atomic uint64_t thread_ns;
};

/*
 * What one process waits for on one device, where its tenant was granted less than its quota. T writes
 * `bytes`, counts `ask` up and rings; D, having decided, and having raised the grant or not, makes
 * `answered` the ask. An ask of 0 bytes takes the one before back.
 */
struct region_want {
	_Atomic uint64_t bytes;    /* T: beyond what the tenant holds; 0: nothing */
	_Atomic uint32_t ask;      /* T; seq_cst */
	_Atomic uint32_t answered; /* D; seq_cst */
};

/* A part of the swap arena, and whose it is. T alone. */
struct region_arena_chunk {
	_Atomic uint64_t owner; /* seq_cst; as in region_export */
};

struct region_report {
	uint32_t magic;
	uint32_t version;
	uint32_t size_bytes; /* REGION_REPORT_BYTES: an older library takes no other */
	uint32_t has_steps; /* 1: the file has `steps`; of a daemon without them 0: it ends before */
	struct region_slot slot[REGION_MAX_SLOTS];
	struct region_export export[REGION_MAX_EXPORTS];
	struct region_spent spent[REGION_MAX_DEVICES];
	struct region_bell bell[REGION_MAX_DEVICES];
	struct region_want want[REGION_MAX_SLOTS][REGION_MAX_DEVICES];
	struct region_arena_chunk arena[REGION_ARENA_CHUNKS];
	struct step_counts steps[REGION_MAX_DEVICES]; /* T; not to be touched without has_steps */
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

/* True once the daemon that made it has ended; false also where that can't be told. Thread safe. */
static inline bool region_has_lost_owner(const struct region_control *c)
{
	return atomic_load(&c->owner) & FUTEX_OWNER_DIED;
}

/* True when a mapped control or report file is of a layout that this build can use. Pure; thread safe. */
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
