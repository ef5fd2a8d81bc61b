/*
 * The device interface: what the daemon asks of the cards it shares. A backend is a vtable; the
 * daemon knows nothing of NVML. Backends are listed in gpu.c, a file each.
 *
 * A card here is whatever has memory and time of its own: a GPU, or a MIG instance. Of a GPU in MIG mode
 * there are its instances alone.
 *
 * Thread safety: any call from any thread, as NVML promises; open and close from one.
 * Calls may take milliseconds, and seconds when a card is sick: never from an event loop.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

#define GPU_UUID_TEXT_MAX 80
#define GPU_NAME_MAX 96
#define GPU_VERSION_MAX 80

/*
 * What a process needs beside the card's device file to use a MIG instance: the driver's capabilities, each a
 * device file /dev/nvidia-caps/nvidia-cap<minor>. Which minor is whose, the kernel module says in files such as
 *
 *     /proc/driver/nvidia/capabilities/gpu0/mig/gi7/access       of the GPU instance
 *     /proc/driver/nvidia/capabilities/gpu0/mig/gi7/ci0/access   of the compute instance
 *
 * with a line "DeviceFileMinor: 66"; gpu0 is the minor of the card's device file (MIG user guide, "Device
 * Nodes and Capabilities").
 */
#define MIG_CAPS_DIR "/proc/driver/nvidia/capabilities"

struct mig_caps {
	bool is_known;
	unsigned gpu_instance, compute_instance; /* minors */
};

/* is_known is false where either file is not there or says something else. Thread safe. */
struct mig_caps mig_caps_read(const char *dir, unsigned card_minor, unsigned gpu_instance,
			      unsigned compute_instance);

struct gpu_info {
	uint8_t uuid[16];
	char uuid_text[GPU_UUID_TEXT_MAX]; /* "GPU-8-4-4-4-12 hex digits", or "MIG-..." */
	char name[GPU_NAME_MAX];
	uint64_t memory_bytes; /* what can be held on the card: its total less the driver's reserve */
	bool minor_known;
	unsigned minor;                         /* of its device file; of an instance, its card's */
	bool is_instance;                       /* of MIG */
	struct mig_caps caps;                   /* of an instance: what gives access to it */
	char card_uuid_text[GPU_UUID_TEXT_MAX]; /* of an instance: its card's; "": not known */
	unsigned sms;                           /* of the card, or of the instance; 0: not known */
	unsigned capability_major, capability_minor; /* of CUDA; 0.0: not known */
};

struct gpu_memory {
	uint64_t used_bytes; /* by all processes, without the driver's reserve */
	uint64_t total_bytes;
	uint64_t reserved_bytes; /* 0 where the driver does not tell it apart */
};

struct gpu_process {
	int pid; /* in the pid namespace of the driver: the host's */
	bool used_known;
	uint64_t used_bytes; /* contexts and all; only when used_known */
};

/* A process's use of the card in one of the driver's own periods of sampling. */
struct gpu_use {
	int pid;           /* as in struct gpu_process */
	double share;      /* of the card's time, 0 to 1 */
	uint64_t stamp_us; /* end of the period, by the driver's clock */
};

#define GPU_PCI_TEXT_MAX 32

/* Where a card sits, as far as the driver and the kernel tell. */
struct gpu_seat {
	char pci[GPU_PCI_TEXT_MAX]; /* "0000:18:00.0", as in /sys/bus/pci/devices; "": unknown */
	bool numa_known;
	unsigned numa;
};

/* Where the ways of two cards to the CPU meet, farthest first: as nvidia-smi topo -m names them. */
enum gpu_way {
	GPU_WAY_UNKNOWN,
	GPU_WAY_SYS,  /* across CPU sockets or NUMA nodes */
	GPU_WAY_NODE, /* in one NUMA node, across host bridges */
	GPU_WAY_PHB,  /* at a host bridge */
	GPU_WAY_PXB,  /* across several PCIe switches */
	GPU_WAY_PIX,  /* at one PCIe switch */
	GPU_WAY_PSB,  /* on one board */
};

struct gpu_link {
	unsigned nvlinks; /* active ones between the two, directly or through NVSwitches */
	enum gpu_way way; /* beside them */
};

enum gpu_fault_kind {
	GPU_FAULT_XID, /* number: the Xid's */
	GPU_FAULT_ECC, /* an error of two bits in its memory */
	GPU_FAULT_KINDS
};
struct gpu_fault {
	unsigned index; /* of the card */
	enum gpu_fault_kind kind;
	uint64_t number;
};

struct gpu; /* one opened backend: all its cards */

struct gpu_backend {
	const char *name;
	/*
	 * `source` is the backend's own (NVML: the path or name of the library). -ENODEV when there is
	 * no driver or no card, with one line that says which.
	 */
	int (*open)(const char *source, struct gpu **ret, struct error *err);
	struct gpu *(*close)(struct gpu *gpu); /* NULL is fine; returns NULL */
	unsigned (*count)(struct gpu *gpu);
	const char *(*driver_version)(struct gpu *gpu); /* "" when unknown; lives as long as gpu */
	unsigned (*cuda_version)(
		struct gpu *gpu); /* the newest that the driver knows, 12080 for 12.8; 0: unknown */
	/* One line: what of the machine is none of these cards, and why. "": nothing; lives as long as gpu */
	const char *(*left_out)(struct gpu *gpu);
	int (*info)(struct gpu *gpu, unsigned index, struct gpu_info *ret, struct error *err);
	int (*memory)(struct gpu *gpu, unsigned index, struct gpu_memory *ret, struct error *err);
	/*
	 * The processes that hold memory on the card, each once: at most `max` of them; *ret_count is
	 * how many there are (more than max: the list is cut).
	 */
	int (*processes)(struct gpu *gpu, unsigned index, struct gpu_process *list, size_t max,
			 size_t *ret_count, struct error *err);
	/*
	 * The last sample of each process that has one later than since_us (by the driver's clock: an
	 * earlier stamp_us, or 0), each process once, at most `max`; one that did nothing may not be listed. -EOPNOTSUPP where the
	 * driver tells no process's use.
	 */
	int (*use)(struct gpu *gpu, unsigned index, uint64_t since_us, struct gpu_use *list,
		   size_t max, size_t *ret_count, struct error *err);
	/* What share of its time the card worked of late, for whomever: 0 to 1. -EOPNOTSUPP as above. */
	int (*busy)(struct gpu *gpu, unsigned index, double *ret_share, struct error *err);
	/*
	 * Where a card sits; and how all are linked: the entry a * count + b is that of cards a and b, both
	 * ways the same. What the driver has no function for, or does not say, is unknown, and no error.
	 */
	struct gpu_seat (*seat)(struct gpu *gpu, unsigned index);
	int (*links)(struct gpu *gpu, struct gpu_link *ret, struct error *err);
	/*
	 * Waits up to timeout_ms for a fault of any card. 1: *ret is one; 0: there was none; -EOPNOTSUPP: the
	 * driver tells of none; -errno. One thread at a time; what happened before the first call is not told.
	 */
	int (*wait_fault)(struct gpu *gpu, unsigned timeout_ms, struct gpu_fault *ret,
			  struct error *err);
};

extern const struct gpu_backend gpu_nvml;

/* By name, from the list; NULL when there is none of that name. */
const struct gpu_backend *gpu_backend_find(const char *name);

/*
 * "GPU-11223344-...", "MIG-..." or bare hex digits to bytes; -EINVAL when it holds no 32 digits (old
 * MIG names hold a card's UUID and numbers: not understood).
 */
int gpu_uuid_parse(const char *text, uint8_t ret_uuid[16]);
