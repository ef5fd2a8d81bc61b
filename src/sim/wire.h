/*
 * The protocol between the server of the simulated GPUs ("cards") and its client libraries, over a unix stream socket. A
 * request has 64 bytes. A reply has 64 bytes, then `payload_bytes` more. SIM_WIRE_MAGIC changes with the layout.
 *
 * A request whose `req` is 0 is one-way: it gets no reply. Every other request gets exactly one reply, which may come later.
 * Replies whose `req` is 0 are notes, which the server sends unasked.
 */
#pragma once

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#define SIM_WIRE_MAGIC 0x616c6c6f74730009ULL
/* Limit of GPUs and MIG instances together. The server numbers the instances after the GPUs. */
#define SIM_MAX_CARDS 16
/*
 * The server makes a file "<socket path>.uvm". cuInit opens it as the real driver opens /dev/nvidia-uvm, so programs that watch
 * device nodes detect simulated programs too.
 */
#define SIM_NODE_SUFFIX ".uvm"
#define SIM_NODE_MAX 128      /* bytes of that file's path, with its NUL */
#define SIM_LAUNCH_QUEUE 1024 /* limit of a process's launches in flight, as in the real driver */

enum sim_client_kind { SIM_KIND_CUDA = 1, SIM_KIND_NVML = 2, SIM_KIND_CTL = 3 };

/* A comment says what `card`, `id` and `arg` hold and, after "->", what the reply holds. [one-way] requests get no reply. */
enum sim_request {
	/*
	 * arg: magic, kind, the client's time, number of its MPS server or 0. A CUDA client's request carries the descriptor of
	 * its struct sim_gate. -> val: number of cards, 1 if the clocks of client and server differ
	 */
	SIM_HELLO = 1,
	SIM_CARD_INFO, /* card -> payload struct sim_card_info */
	SIM_MEM_NEW,   /* card, arg: bytes, enum sim_block_kind -> val: block */
	SIM_MEM_FREE,  /* id: block, which this client no longer holds */
	SIM_MEM_INFO,  /* card -> val: total, used */
	/* id: block; carries the read end of a pipe, whose write end stands for the block */
	SIM_MEM_EXPORT,
	SIM_MEM_IMPORT, /* carries a descriptor for a block -> val: block, bytes, card */
	/* id: block -> val: the block's name, with which another process can open it (SIM_MEM_OPEN) */
	SIM_MEM_NAME,
	/* arg: name, 1 if NVML shall never count the block for the client -> val: block, bytes, card */
	SIM_MEM_OPEN,
	/*
	 * [one-way] card, id: stream, arg: context, enum sim_stream_flags, millionths of the SMs that the process may use (0:
	 * unchanged)
	 */
	SIM_STREAM_NEW,
	SIM_STREAM_FREE, /* [one-way] id: stream */
	/*
	 * [one-way] id: stream, arg: ns on an idle card, number of launches, millionths of the SMs that the work takes, enum
	 * sim_way
	 */
	SIM_WORK,
	/* [one-way] id: stream, arg: cookie; SIM_NOTE_HOST follows when the stream reaches this */
	SIM_HOST,
	SIM_SPIN,         /* [one-way] like SIM_HOST, but occupies the card until SIM_RELEASE */
	SIM_RELEASE,      /* [one-way] arg: cookie; ends the SIM_HOST or SIM_SPIN of that cookie */
	SIM_EVENT_NEW,    /* [one-way] id: event */
	SIM_EVENT_FREE,   /* [one-way] id: event */
	SIM_EVENT_RECORD, /* [one-way] id: event, arg: stream */
	SIM_EVENT_AWAIT,  /* [one-way] id: event, arg: stream, which then waits for the event */
	/* id: event -> val: done, done at ns, earliest ns at which it can be done */
	SIM_EVENT_QUERY,
	/* id: event; the reply comes when the event is done -> val: 1, done at ns */
	SIM_EVENT_SYNC,
	SIM_EVENT_NAME,   /* id: event -> val: the event's name for another process */
	SIM_EVENT_OPEN,   /* id: a new event id, arg: name */
	SIM_STREAM_QUERY, /* id: stream -> val: done, 0, earliest ns at which it can be done */
	SIM_STREAM_SYNC,  /* id: stream; the reply comes when the stream is done */
	/* card, arg: context; the reply comes when all streams of the context are done */
	SIM_CTX_SYNC,
	SIM_ROOM,     /* the reply comes when the launch queue has room again */
	SIM_CTX_FREE, /* card, arg: context; drops the unfinished work of the context's streams */
	/* card, arg[0]: age in us of the oldest sample of use -> payload struct sim_card_state, then its processes */
	SIM_CARD_STATE,
	SIM_SAMPLES, /* card, arg: since ns -> payload: struct sim_sample, oldest first */
	SIM_LISTEN,  /* arg: 1 to get Xid and ECC notes from now on, 0 to stop them */
	/* Requests about another process (arg: its pid), up to SIM_PROCESS_UNLOCK. The reply comes when they took effect. */
	SIM_PROCESS_STATE, /* -> val: enum sim_process */
	SIM_PROCESS_LOCK,  /* arg: pid, limit in ms (0: none) */
	SIM_PROCESS_CHECKPOINT,
	SIM_PROCESS_RESTORE,
	SIM_PROCESS_UNLOCK,
	SIM_CTL_XID,   /* card, arg: number */
	SIM_CTL_LOSE,  /* card */
	SIM_CTL_HEAL,  /* card */
	SIM_CTL_ECC,   /* card: raises a double-bit error of the card's memory */
	SIM_CTL_STATS, /* -> payload: JSON text */
	SIM_NOTE_HOST, /* val: cookie */
	SIM_NOTE_XID,  /* val: card, number */
	SIM_NOTE_ECC,  /* val: card */
};

enum sim_block_kind { SIM_BLOCK_DATA, SIM_BLOCK_CONTEXT, SIM_BLOCK_MANAGED };
/* Values as in CUprocessState. */
enum sim_process { SIM_PROCESS_RUNNING, SIM_PROCESS_LOCKED, SIM_PROCESS_CHECKPOINTED };

/*
 * Memory that a CUDA client shares with the server. While is_shut is set, the client sends only requests that sim_passes_gate()
 * allows; other calls of the program wait. is_shut is a futex word that only the server writes.
 */
struct sim_gate {
	_Atomic uint32_t is_shut;
};

/* The direction of a copy. A process runs at most one copy at a time in each direction. */
enum sim_way {
	SIM_WAY_NONE,
	SIM_WAY_IN,  /* from the host to a card */
	SIM_WAY_OUT, /* from a card to the host */
	SIM_WAY_WITHIN,
	SIM_WAY_PEER,
};

enum sim_stream_flags { SIM_STREAM_LEGACY = 1, SIM_STREAM_NONBLOCKING = 2 };

/* Values as in CUresult, so the client can pass them on. */
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

static inline bool sim_passes_gate(uint32_t type)
{
	return type == SIM_RELEASE || (type >= SIM_PROCESS_STATE && type <= SIM_PROCESS_UNLOCK);
}

struct sim_request_msg {
	uint32_t type;
	uint32_t req;
	uint64_t stamp_ns; /* CLOCK_MONOTONIC at sending, the time of submission */
	uint32_t card;
	uint32_t id;
	uint64_t arg[5];
};
static_assert(sizeof(struct sim_request_msg) == 64, "requests are cut by size");

struct sim_reply_msg {
	uint32_t type;
	uint32_t req;
	int32_t status;
	uint32_t payload_bytes;
	uint64_t completed; /* how many of this client's launches are done */
	uint64_t val[5];
};
static_assert(sizeof(struct sim_reply_msg) == 64, "replies are cut by size");

#define SIM_NAME_BYTES 96
#define SIM_LINKS 18
#define SIM_PCIE_DEPTH 4

struct sim_card_info {
	char name[SIM_NAME_BYTES];
	char uuid[48]; /* in NVML's form: "GPU-" or "MIG-" and 36 characters */
	unsigned char uuid_bytes[16];
	char pci[32]; /* such as 00000000:18:00.0 */
	uint32_t pci_domain, pci_bus, pci_device;
	uint64_t memory_bytes;
	uint64_t context_bytes;
	uint64_t block_bytes; /* granularity of device memory */
	/* copy: copies to or from the host; set: copies and memsets within the card */
	uint64_t copy_bytes_per_s, set_bytes_per_s;
	uint64_t nvlink_bytes_per_s; /* rate of copies to a peer, for each NVLink */
	/* rate of copies over PCIe between cards of different NUMA nodes; 0: half of copy_bytes_per_s */
	uint64_t far_bytes_per_s;
	int32_t sms;
	uint32_t busy_threads; /* threads that keep one SM busy; an SM has room for more */
	int32_t cc_major, cc_minor;
	int32_t numa;      /* -1: unknown */
	uint32_t peers;    /* bit i: NVLink to card i */
	uint32_t switched; /* 1 if the links go to a switch */
	/* links[i]: number of NVLinks to card i. If `switched`: the number of all NVLinks of this card, for each peer i. */
	uint8_t links[SIM_MAX_CARDS];
	uint8_t pcie_depth;                      /* 0: place on the PCIe bus unknown */
	uint8_t pcie[SIM_PCIE_DEPTH];            /* host bridge, then each switch below */
	uint32_t defects;                        /* enum sim_defect */
	uint32_t mig;                            /* enum sim_mig */
	uint32_t parent;                         /* for a MIG instance: the card that contains it */
	uint32_t gpu_instance, compute_instance; /* for a MIG instance: its ids on that card */
	uint32_t slices; /* for a MIG instance: how many of the card's seven compute slices */
};

enum sim_mig {
	SIM_MIG_OFF,
	SIM_MIG_ON,
	SIM_MIG_INSTANCE, /* an instance on a card in MIG mode */
};
#define SIM_MIG_INSTANCES 7 /* on one card */

/* Faults that NVML has on some machines. A description file (server/spec.h) can give them to a card. */
enum sim_defect {
	SIM_DEFECT_NO_PROCESS_UTILIZATION = 1,
	SIM_DEFECT_LOSES_BUSY_PROCESS = 2, /* process utilization lacks the busiest process */
	SIM_DEFECT_NO_PROCESS_MEMORY = 4,
	SIM_DEFECT_NO_SAMPLES = 8,
	SIM_DEFECT_NO_UTILIZATION = 16,
	SIM_DEFECT_NO_ECC = 32,
};

struct sim_card_state {
	uint64_t used_bytes;
	uint64_t now_ns;
	uint32_t busy_pct; /* in the last whole 200 ms */
	uint32_t lost;
	uint32_t processes; /* how many struct sim_process_state follow this struct */
};

struct sim_process_state {
	uint32_t pid;
	uint32_t busy_pct; /* mean of the samples that SIM_CARD_STATE asks for */
	uint64_t used_bytes;
	/* time of the newest sample that found this process at work; 0: none */
	uint64_t stamp_us;
};

struct sim_sample {
	uint64_t end_us;
	uint32_t busy_pct;
	uint32_t pad;
};

/* Orders cards by PCI address, as NVML always does, and CUDA with CUDA_DEVICE_ORDER=PCI_BUS_ID. Returns -1, 0 or 1. */
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
