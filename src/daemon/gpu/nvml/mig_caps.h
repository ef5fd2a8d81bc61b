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
#ifndef ALLOT_DAEMON_GPU_NVML_MIG_CAPS_H
#define ALLOT_DAEMON_GPU_NVML_MIG_CAPS_H

#include <stdbool.h>

#define MIG_CAPS_DIR "/proc/driver/nvidia/capabilities"

struct mig_caps {
	bool is_known;
	unsigned gpu_instance, compute_instance; /* minors */
};

/* is_known is false where either file is not there or says something else. Thread safe. */
struct mig_caps mig_caps_read(const char *dir, unsigned card_minor, unsigned gpu_instance,
			      unsigned compute_instance);

#endif
