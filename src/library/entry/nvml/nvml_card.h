/*
 * The tenant's virtual cards, as NVML is to tell of them: which there are, how much of each is in use,
 * and by which of the tenant's processes. A card is named by its place in the tenant's list, which is
 * the order in which CUDA has them.
 *
 * A tenant's MIG instance is seen as in a container that has one: NVML's device is the GPU, in MIG mode, with that
 * instance alone; and what is asked of the GPU is told of the instance, all that the tenant has of it.
 *
 * Everything comes from the region: memory from the slots, as the quota counts it; time from what the
 * arbiter charged, as a percentage of what the tenant may reach. So a tenant that is held to 30 % and
 * uses them is at 100 %, and the figures of its processes add up to the card's.
 *
 * Thread safe. All but the first two need an active process.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "abi/nvml_abi.h"

/* Whether this process belongs to a tenant (or should, and was refused: no cards). May block. */
bool nvml_is_governed(void);

/* Whether NVML is initialized, as it says itself. */
bool nvml_is_started(void);

int nvml_card_count(void);
/* Of an instance, or of the GPU that it is on. NOT_FOUND: no card of this tenant's; else NVML does not know it. */
nvmlReturn_t nvml_card_of(nvmlDevice_t device, int *ret_card);
/*
 * What a call is answered whose device nvml_card_of() refused as `why`. NVML is asked by the same `call`: another function
 * may see something else wrong with a handle that it does not know.
 */
#define NVML_REFUSED(why, call) \
	((why) == NVML_ERROR_NOT_FOUND ? NVML_ERROR_INVALID_ARGUMENT : nvml_error_of((call), (why)))
static inline nvmlReturn_t nvml_error_of(nvmlReturn_t answer, nvmlReturn_t otherwise)
{
	return answer != NVML_SUCCESS ? answer : otherwise;
}
nvmlReturn_t nvml_device_of(int card, nvmlDevice_t *ret_device);
/* The GPU that it is, or is a part of. */
nvmlReturn_t nvml_gpu_of(int card, nvmlDevice_t *ret_device);

/* Whether it is a MIG instance; what its UUID begins with; its ids on its GPU. */
#define NVML_NO_INSTANCE ~0U
bool nvml_is_instance(int card);
const char *nvml_uuid_prefix(int card);
void nvml_instance_ids(int card, unsigned int *ret_gpu_instance, unsigned int *ret_compute_instance);
/* `prefix` ("GPU-") and the UUID, as NVML and CUDA write it. */
void nvml_format_uuid(char text[NVML_DEVICE_UUID_BUFFER_SIZE], const char *prefix,
		      const uint8_t uuid[16]);

/* Percent of the time that the tenant may have, over the last second. */
unsigned int nvml_card_busy_pct(int card);
/* `bytes` in percent of the quota. */
unsigned int nvml_card_memory_pct(int card, uint64_t bytes);

/* A process that has a context on the card. */
struct nvml_process {
	unsigned int pid; /* what getpid() says in it */
	uint64_t used_bytes;
	unsigned int busy_pct; /* its part of nvml_card_busy_pct() */
};

struct nvml_process_iterator {
	int card;
	uint32_t next_slot;
	uint64_t weights; /* of all processes together */
	unsigned int busy_pct;
};

struct nvml_process_iterator nvml_processes(int card);
bool nvml_next_process(struct nvml_process_iterator *iterator, struct nvml_process *ret_process);
unsigned int nvml_process_count(int card);
