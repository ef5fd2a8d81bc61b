/*
 * The tenant's GPUs as NVML shows them. `card` is a GPU's index in the tenant's list, which has CUDA's order.
 *
 * For a tenant's MIG instance, NVML shows what it shows in a container with one instance: a GPU in MIG mode with only that
 * instance. Queries about the GPU are answered for the instance.
 *
 * All values come from the region (abi/shm/region.h). Busy time is a percentage of what the tenant may use: a tenant that uses
 * all of its limit of 30 % shows 100 %. The values of the processes add up to the value of the GPU.
 *
 * Thread safe. The functions below nvml_card_of() need a process that has joined its tenant (process_is_active()).
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "abi/nvml_abi.h"

/* True if the process belongs to a tenant, even if the daemon refused it; a refused process has no GPUs. May block. */
bool nvml_is_governed(void);

/* True if NVML is initialized, or if it lacks the function that would tell. */
bool nvml_is_started(void);

int nvml_card_count(void);
/* For a MIG instance's GPU, finds the instance. NVML_ERROR_NOT_FOUND: not the tenant's; other errors: unknown to NVML. */
nvmlReturn_t nvml_card_of(nvmlDevice_t device, int *ret_card);
/*
 * The result of a call for a device that nvml_card_of() refused with `why`: invalid argument if the device is not the tenant's.
 * Otherwise NVML's own result of `call`, because functions differ in their error for an unknown handle.
 */
#define NVML_REFUSED(why, call) \
	((why) == NVML_ERROR_NOT_FOUND ? NVML_ERROR_INVALID_ARGUMENT : nvml_error_of((call), (why)))
static inline nvmlReturn_t nvml_error_of(nvmlReturn_t answer, nvmlReturn_t otherwise)
{
	return answer != NVML_SUCCESS ? answer : otherwise;
}
nvmlReturn_t nvml_device_of(int card, nvmlDevice_t *ret_device);
/* As nvml_device_of(), but for a MIG instance returns the GPU that contains it. */
nvmlReturn_t nvml_gpu_of(int card, nvmlDevice_t *ret_device);

/* Of a whole GPU, both ids are NVML_NO_INSTANCE. */
#define NVML_NO_INSTANCE ~0U
bool nvml_is_instance(int card);
const char *nvml_uuid_prefix(int card);
void nvml_instance_ids(int card, unsigned int *ret_gpu_instance, unsigned int *ret_compute_instance);
/* Writes `prefix` (such as "GPU-") and the UUID in the format of NVML and CUDA. */
void nvml_format_uuid(char text[NVML_DEVICE_UUID_BUFFER_SIZE], const char *prefix,
		      const uint8_t uuid[16]);

/* Returns the GPU time of the last second, in percent of what the tenant may use. */
unsigned int nvml_card_busy_pct(int card);
unsigned int nvml_card_memory_pct(int card, uint64_t bytes);

struct nvml_process {
	unsigned int pid; /* the pid that getpid() returns in the process itself */
	uint64_t used_bytes;
	unsigned int busy_pct; /* part of nvml_card_busy_pct() */
};

struct nvml_process_iterator {
	int card;
	uint32_t next_slot;
	uint64_t weights; /* sum of the weights (nvml_card.c), for sharing out busy_pct */
	unsigned int busy_pct;
};

struct nvml_process_iterator nvml_processes(int card);
bool nvml_next_process(struct nvml_process_iterator *iterator, struct nvml_process *ret_process);
unsigned int nvml_process_count(int card);
