/*
 * What the simulated card's server and its client libraries say to each other, over a unix stream
 * socket. Every request is 64 bytes, so a read of many is cut without parsing; a reply is 64 bytes
 * and may carry `payload_bytes` more. Both ends are built together: there is no version to agree on
 * beyond SIM_WIRE_MAGIC, which changes with the layout.
 *
 * One-way requests (`req` is 0) get no reply. The rest get exactly one, at once or when what they
 * wait for has happened. The server also sends notes (`req` is 0 in the reply).
 */
#pragma once

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#define SIM_WIRE_MAGIC 0x616c6c6f74730008ULL
#define SIM_MAX_CARDS 16 /* MIG instances are counted too: the server has them behind the cards */
/*
 * Beside the socket "<path>" is "<path>.uvm", which a program opens at its cuInit, as it opens the driver's
 * /dev/nvidia-uvm: what watches the one watches the other the same way.
 */
#define SIM_NODE_SUFFIX ".uvm"
#define SIM_NODE_MAX 128
#define SIM_LAUNCH_QUEUE 1024 /* launches in flight per process, as the real driver has it */

enum sim_client_kind { SIM_KIND_CUDA = 1, SIM_KIND_NVML = 2, SIM_KIND_CTL = 3 };

/* Requests. `card`, `id` and `arg` are as each line says; [one-way] ones get no reply. */
enum sim_request {
	/* arg: magic, kind, now on the client's clock, its MPS server or 0; a CUDA client's carries its struct
	 * sim_gate -> val: cards, driver version */
	SIM_HELLO = 1,
	SIM_CARD_INFO,  /* card -> payload struct sim_card_info */
	SIM_MEM_NEW,    /* card, arg: bytes, enum sim_block_kind -> val: block */
	SIM_MEM_FREE,   /* id: block; gives this client's hold on it back */
	SIM_MEM_INFO,   /* card -> val: total, used */
	SIM_MEM_EXPORT, /* id: block; carries the write end's peer of a pipe that stands for it */
	SIM_MEM_IMPORT, /* carries a descriptor that stands for a block -> val: block, bytes, card */
	SIM_MEM_NAME,   /* id: block, arg: address -> val: name for another process (legacy IPC) */
	SIM_MEM_OPEN, /* arg: name, 1: NVML never counts it for the client -> val: block, bytes, card */
	/* [one-way] card, id: stream, arg: context, enum sim_stream_flags, millionths of the SMs that its process may use */
	SIM_STREAM_NEW,
	SIM_STREAM_FREE, /* [one-way] id: stream */
	/* [one-way] id: stream, arg: ns of the idle card, launches it counts for, millionths of its SMs, enum sim_way */
	SIM_WORK,
	SIM_HOST,       /* [one-way] id: stream, arg: cookie; a SIM_NOTE_HOST when it is reached */
	SIM_SPIN,       /* [one-way] as SIM_HOST, but occupies the card until SIM_RELEASE */
	SIM_RELEASE,    /* [one-way] arg: cookie; the SIM_HOST or SIM_SPIN is over */
	SIM_EVENT_NEW,  /* [one-way] id: event */
	SIM_EVENT_FREE, /* [one-way] id: event */
	SIM_EVENT_RECORD, /* [one-way] id: event, arg: stream */
	SIM_EVENT_AWAIT,  /* [one-way] id: event, arg: stream */
	SIM_EVENT_QUERY,  /* id: event -> val: done, at ns, not before ns */
	SIM_EVENT_SYNC,   /* id: event; replies when done -> val: 1, at ns */
	SIM_EVENT_NAME,   /* id: event -> val: name for another process */
	SIM_EVENT_OPEN,   /* id: a new event id, arg: name */
	SIM_STREAM_QUERY, /* id: stream -> val: done, 0, not before ns */
	SIM_STREAM_SYNC,  /* id: stream; replies when done */
	SIM_CTX_SYNC,     /* card, arg: context; replies when all its streams are done */
	SIM_ROOM,         /* replies when the launch queue has room again */
	SIM_CTX_FREE,     /* card, arg: context; drops its streams' work */
	SIM_CARD_STATE,   /* card -> payload struct sim_card_state, then its processes */
	SIM_SAMPLES,      /* card, arg: since ns -> payload: struct sim_sample, oldest first */
	SIM_LISTEN,       /* card, arg: on; SIM_NOTE_XID from now on */
	/* Of another process, arg: its pid. Replies when it has been done. */
	SIM_PROCESS_STATE, /* -> val: enum sim_process */
	SIM_PROCESS_LOCK,  /* arg: pid, ms (0: no limit) */
	SIM_PROCESS_CHECKPOINT,
	SIM_PROCESS_RESTORE,
	SIM_PROCESS_UNLOCK,
	SIM_CTL_XID,   /* card, arg: number */
	SIM_CTL_LOSE,  /* card */
	SIM_CTL_HEAL,  /* card */
	SIM_CTL_ECC,   /* card: a double-bit error of its memory */
	SIM_CTL_STATS, /* -> payload: JSON text */
	SIM_NOTE_HOST, /* val: cookie */
	SIM_NOTE_XID,  /* val: card, number */
	SIM_NOTE_ECC,  /* val: card */
};

enum sim_block_kind { SIM_BLOCK_DATA, SIM_BLOCK_CONTEXT, SIM_BLOCK_MANAGED };
/* CUprocessState's values. */
enum sim_process { SIM_PROCESS_RUNNING, SIM_PROCESS_LOCKED, SIM_PROCESS_CHECKPOINTED };

/*
 * Shared memory of one CUDA client and the server: while it is shut the client sends nothing that its
 * program asks for, so that calls wait. A futex word, written by the server alone.
 */
struct sim_gate {
	_Atomic uint32_t is_shut;
};

/* Which way a copy goes, of a process's streams: one at a time goes each way. */
enum sim_way {
	SIM_WAY_NONE, /* it is no copy */
	SIM_WAY_IN,   /* from the host */
	SIM_WAY_OUT,  /* to the host */
	SIM_WAY_WITHIN,
	SIM_WAY_PEER, /* between cards */
};

enum sim_stream_flags { SIM_STREAM_LEGACY = 1, SIM_STREAM_NONBLOCKING = 2 };

/* Reply codes are CUresult values; the client passes them on. */
enum sim_status {
	SIM_OK = 0,
	SIM_INVALID = 1,
	SIM_OOM = 2,
	SIM_NOT_INITIALIZED = 3,
	SIM_BAD_DEVICE = 101,
	SIM_BAD_HANDLE = 400,
	SIM_ILLEGAL_STATE = 401,
	SIM_NOT_READY = 600,
	SIM_LAUNCH_FAILED = 719,
	SIM_NOT_PERMITTED = 800,
	SIM_NOT_SUPPORTED = 801,
	SIM_CARD_LOST = 999,
};

/* A request that a client may send whose own gate is shut. */
static inline bool sim_passes_gate(uint32_t type)
{
	return type == SIM_RELEASE || (type >= SIM_PROCESS_STATE && type <= SIM_PROCESS_UNLOCK);
}

struct sim_request_msg {
	uint32_t type;
	uint32_t req;      /* 0: one-way */
	uint64_t stamp_ns; /* CLOCK_MONOTONIC when it was sent: the server counts work from here */
	uint32_t card;
	uint32_t id;
	uint64_t arg[5];
};
static_assert(sizeof(struct sim_request_msg) == 64, "requests are cut by size");

struct sim_reply_msg {
	uint32_t type;
	uint32_t req; /* 0: a note */
	int32_t status;
	uint32_t payload_bytes;
	uint64_t completed; /* launches of this client that are done, ever */
	uint64_t val[5];
};
static_assert(sizeof(struct sim_reply_msg) == 64, "replies are cut by size");

#define SIM_NAME_BYTES 96
#define SIM_LINKS 18
#define SIM_PCIE_DEPTH 4

/* What of a card does not change. */
struct sim_card_info {
	char name[SIM_NAME_BYTES];
	char uuid[48]; /* as NVML writes it: "GPU-" or "MIG-", and 36 characters */
	unsigned char uuid_bytes[16];
	char pci[32]; /* 00000000:18:00.0 */
	uint32_t pci_domain, pci_bus, pci_device;
	uint64_t memory_bytes;
	uint64_t context_bytes;
	uint64_t block_bytes;                       /* granularity of device memory */
	uint64_t copy_bytes_per_s, set_bytes_per_s; /* to and from the host; within the card */
	uint64_t nvlink_bytes_per_s;                /* to a peer, over one link */
	/* Over PCIe to a card of another NUMA node (0: half of that to the host); to others as to the host. */
	uint64_t far_bytes_per_s;
	int32_t sms;
	uint32_t busy_threads; /* of an SM: so many keep it busy, though it has room for more */
	int32_t cc_major, cc_minor;
	int32_t numa;                 /* -1: not known */
	uint32_t peers;               /* bit i: NVLink to card i */
	uint32_t switched;            /* links go to a switch */
	uint8_t links[SIM_MAX_CARDS]; /* NVLinks to card i; through a switch the same for each peer */
	uint8_t pcie_depth;           /* 0: where it hangs is not known */
	uint8_t pcie[SIM_PCIE_DEPTH]; /* host bridge, then switch by switch */
	uint32_t defects;             /* enum sim_defect */
	uint32_t mig;                 /* enum sim_mig */
	uint32_t parent;              /* SIM_MIG_INSTANCE: the card that it is a part of */
	uint32_t gpu_instance, compute_instance; /* SIM_MIG_INSTANCE: its ids on that card */
	uint32_t slices; /* SIM_MIG_INSTANCE: of the card's seven of compute */
};

enum sim_mig {
	SIM_MIG_OFF,
	SIM_MIG_ON,       /* of the card nothing can be had but its instances */
	SIM_MIG_INSTANCE, /* of a card that is on */
};
#define SIM_MIG_INSTANCES 7 /* of a card, at most */

/* What NVML of some machines gets wrong, to be asked for in a description file. */
enum sim_defect {
	SIM_DEFECT_NO_PROCESS_UTILIZATION = 1, /* not supported */
	SIM_DEFECT_LOSES_BUSY_PROCESS = 2,     /* the busiest process is not listed */
	SIM_DEFECT_NO_PROCESS_MEMORY = 4,      /* memory of processes not available */
	SIM_DEFECT_NO_SAMPLES = 8,
	SIM_DEFECT_NO_UTILIZATION = 16,
	SIM_DEFECT_NO_ECC = 32,
};

struct sim_card_state {
	uint64_t used_bytes;
	uint64_t now_ns;
	uint32_t busy_pct; /* over the last whole 200 ms */
	uint32_t memory_pct;
	uint32_t lost;
	uint32_t processes; /* struct sim_process_state each, behind this one */
};

struct sim_process_state {
	uint32_t pid;
	uint32_t busy_pct;
	uint64_t used_bytes;
	uint64_t stamp_us; /* end of the 200 ms that busy_pct is about */
};

struct sim_sample {
	uint64_t end_us;
	uint32_t busy_pct;
	uint32_t pad;
};

/* Order of PCI addresses: that of NVML, and of CUDA where it is asked for. */
static inline int sim_pci_compare(const struct sim_card_info *a, const struct sim_card_info *b)
{
	uint64_t x = (uint64_t)a->pci_domain << 32 | a->pci_bus << 8 | a->pci_device;
	uint64_t y = (uint64_t)b->pci_domain << 32 | b->pci_bus << 8 | b->pci_device;

	return (x > y) - (x < y);
}

static inline uint64_t sim_clock_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}
