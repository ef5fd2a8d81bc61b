/*
 * The calls by which the daemon reaches its cards, as a vtable (struct gpu_backend) for each backend; gpu.c lists the backends.
 * A card is anything with memory and compute time of its own: a GPU or a MIG instance. A GPU in MIG mode is itself no card;
 * its instances are.
 *
 * Calls may come from any thread, but open() and close() from the same thread. A call takes milliseconds, or seconds if a card
 * is faulty: never call from an event loop.
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
 * A process needs two driver capabilities to use a MIG instance, beside the GPU's device file. Each is a device file
 * /dev/nvidia-caps/nvidia-cap<minor>. The kernel module gives the minors in files such as
 *
 *     /proc/driver/nvidia/capabilities/gpu0/mig/gi7/access       of the GPU instance
 *     /proc/driver/nvidia/capabilities/gpu0/mig/gi7/ci0/access   of the compute instance
 *
 * with a line "DeviceFileMinor: 66". The number in "gpu0" is the minor of the GPU's device file (MIG user guide, "Device Nodes
 * and Capabilities").
 */
#define MIG_CAPS_DIR "/proc/driver/nvidia/capabilities"

struct mig_caps {
	bool is_known;
	unsigned gpu_instance, compute_instance; /* minors of device files */
};

/* Reads the minors. is_known is false if a file is missing or has another format. Thread safe. */
struct mig_caps mig_caps_read(const char *dir, unsigned card_minor, unsigned gpu_instance,
			      unsigned compute_instance);

struct gpu_info {
	uint8_t uuid[16];
	char uuid_text[GPU_UUID_TEXT_MAX]; /* "GPU-8-4-4-4-12 hex digits", or "MIG-..." */
	char name[GPU_NAME_MAX];
	uint64_t memory_bytes; /* usable memory, without the driver's reserve */
	bool minor_known;
	/* minor of the device file; for a MIG instance, that of its GPU */
	unsigned minor;
	bool is_instance;
	/* driver capabilities of a MIG instance; for a whole GPU, is_known is false */
	struct mig_caps caps;
	/* for a MIG instance: its GPU's UUID; "": unknown */
	char card_uuid_text[GPU_UUID_TEXT_MAX];
	unsigned sms;                                /* 0: unknown */
	unsigned capability_major, capability_minor; /* CUDA compute capability; 0.0: unknown */
};

struct gpu_memory {
	uint64_t used_bytes; /* used by all processes, without the driver's reserve */
	uint64_t total_bytes;
	uint64_t reserved_bytes; /* 0 if the driver does not report it */
};

struct gpu_process {
	int pid; /* in the host's pid namespace */
	bool used_known;
	uint64_t used_bytes; /* includes contexts; valid if used_known */
};

struct gpu_use {
	int pid;           /* as in struct gpu_process */
	double share;      /* share of the card's time, 0 to 1 */
	uint64_t stamp_us; /* end of the sampling period, on the driver's clock */
};

#define GPU_PCI_TEXT_MAX 32

/* Where a card is in the machine. */
struct gpu_locality {
	char pci[GPU_PCI_TEXT_MAX]; /* "0000:18:00.0", as in /sys/bus/pci/devices; "": unknown */
	bool numa_known;
	unsigned numa;
};

/* Where the PCIe paths of two cards meet, farthest first, as in nvidia-smi topo -m. */
enum gpu_way {
	GPU_WAY_UNKNOWN,
	GPU_WAY_SYS,  /* across CPU sockets or NUMA nodes */
	GPU_WAY_NODE, /* within one NUMA node, across host bridges */
	GPU_WAY_PHB,  /* at one PCIe host bridge */
	GPU_WAY_PXB,  /* across several PCIe switches */
	GPU_WAY_PIX,  /* at one PCIe switch */
	GPU_WAY_PSB,  /* on the same board */
};

struct gpu_link {
	unsigned nvlinks; /* active NVLinks, direct or through NVSwitches */
	enum gpu_way way;
};

enum gpu_fault_kind {
	GPU_FAULT_XID, /* `number` is the Xid */
	GPU_FAULT_ECC, /* a double-bit error in the card's memory */
	GPU_FAULT_KINDS
};
struct gpu_fault {
	unsigned index;
	enum gpu_fault_kind kind;
	uint64_t number;
};

struct gpu;

struct gpu_backend {
	const char *name;
	/* Opens the cards. `source`: for NVML, the library's path or name. Returns -ENODEV if there is no driver or no card. */
	int (*open)(const char *source, struct gpu **ret, struct error *err);
	struct gpu *(*close)(struct gpu *gpu); /* NULL is allowed; returns NULL */
	unsigned (*count)(struct gpu *gpu);
	const char *(*driver_version)(struct gpu *gpu); /* "" if unknown; valid as long as `gpu` */
	/* Returns the newest CUDA version that the driver supports, 12080 for 12.8; 0: unknown. */
	unsigned (*cuda_version)(struct gpu *gpu);
	/* Returns one line that says which devices are not shared, and why; "" if none. Valid as long as `gpu`. */
	const char *(*left_out)(struct gpu *gpu);
	int (*info)(struct gpu *gpu, unsigned index, struct gpu_info *ret, struct error *err);
	int (*memory)(struct gpu *gpu, unsigned index, struct gpu_memory *ret, struct error *err);
	/* Lists up to `max` processes with memory on the card, each once. *ret_count: their number, perhaps above `max`. */
	int (*processes)(struct gpu *gpu, unsigned index, struct gpu_process *list, size_t max,
			 size_t *ret_count, struct error *err);
	/*
	 * Lists each process's latest sample of use that is newer than since_us (a stamp_us, or 0), at most `max`. Idle
	 * processes may be missing. Returns -EOPNOTSUPP if the driver reports no use.
	 */
	int (*use)(struct gpu *gpu, unsigned index, uint64_t since_us, struct gpu_use *list,
		   size_t max, size_t *ret_count, struct error *err);
	/*
	 * Gives the share of the driver's last sampling period (1/6 to 1 s) in which the card worked for any process, 0 to 1.
	 * Returns -EOPNOTSUPP if the driver does not report it.
	 */
	int (*busy)(struct gpu *gpu, unsigned index, double *ret_share, struct error *err);
	struct gpu_locality (*locality)(struct gpu *gpu, unsigned index);
	/* Fills a symmetric matrix: the link of cards a and b is at a * count + b; unknown if the driver does not report it. */
	int (*links)(struct gpu *gpu, struct gpu_link *ret, struct error *err);
	/*
	 * Waits up to timeout_ms for a fault of any card. Faults before the first call are not reported. Returns 1 and *ret, 0
	 * if no fault came, -EOPNOTSUPP if faults are not reported, or another -errno. One thread at a time.
	 */
	int (*wait_fault)(struct gpu *gpu, unsigned timeout_ms, struct gpu_fault *ret,
			  struct error *err);
};

extern const struct gpu_backend gpu_nvml;

/* Returns NULL if there is no backend of that name. */
const struct gpu_backend *gpu_backend_find(const char *name);

/*
 * Reads "GPU-11223344-...", "MIG-..." or bare hex digits. Returns -EINVAL unless there are 32 digits. Old MIG names, which
 * consist of a card's UUID and numbers, are not supported.
 */
int gpu_uuid_parse(const char *text, uint8_t ret_uuid[16]);
