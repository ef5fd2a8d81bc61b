/* Shared by the files of the simulated libnvidia-ml.so.1. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>

#include "sim/client/server_link.h"
#include "sim/nvml/nvml_table.h"

struct nvmlDevice_st {
	uint32_t card; /* the server's number */
	/* of a GPU: its position in the order of PCI addresses; of a MIG instance: its index on its GPU */
	uint32_t index;
	struct sim_card_info info;
};

extern struct link nvml_link;

#define NVML_FAIL_IF(condition, error) \
	do { \
		if (condition) \
			return error; \
	} while (0)
/* An entry point that only returns a constant or calls another function. */
#define NVML_FUNCTION(symbol, params, result) \
	nvmlReturn_t symbol params \
	{ \
		return result; \
	}

/* Returns the GPU or MIG instance of a handle, or NULL with UNINITIALIZED or INVALID_ARGUMENT in *ret_result. */
const struct nvmlDevice_st *nvml_device(nvmlDevice_t device, nvmlReturn_t *ret_result);
/* As nvml_device(), for questions that only a GPU can answer: for an instance, NULL with NOT_SUPPORTED. */
const struct nvmlDevice_st *nvml_whole_card(nvmlDevice_t device, nvmlReturn_t *ret_result);
/* Finds a GPU or instance by the server's number; NULL if there is none. */
struct nvmlDevice_st *nvml_device_at(uint32_t card);
bool nvml_is_up(void);
/* Counts GPUs and MIG instances. */
uint32_t nvml_devices(void);
nvmlReturn_t nvml_put_text(char *to, unsigned int length, const char *text);
/* Returns the GPU's state, followed by its processes; the caller frees it. On failure NULL, with the reason in *ret_result. */
struct sim_card_state *nvml_state(nvmlDevice_t device, nvmlReturn_t *ret_result);
/* As nvml_state(), with the processes' use of the GPU in the last age_us microseconds. */
struct sim_card_state *nvml_state_since(nvmlDevice_t device, uint64_t age_us,
					nvmlReturn_t *ret_result);

/* Begins an entry point with the device `d`. Returns an error from it if find() fails or `out` is NULL. */
#define NVML_BEGIN(find, out) \
	const struct nvmlDevice_st *d; \
	nvmlReturn_t getter_result_; \
	d = find(device, &getter_result_); \
	if (!d) \
		return getter_result_; \
	if (!(out)) \
	return NVML_ERROR_INVALID_ARGUMENT

static inline void nvml_free_state(struct sim_card_state **state)
{
	free(*state);
}
/* Begins an entry point with the device's `state`, which is freed at its end. Returns an error if it fails or `out` is NULL. */
#define STATE_GETTER(out) \
	nvmlReturn_t state_result_; \
	__attribute__((cleanup(nvml_free_state))) struct sim_card_state *state = nvml_state( \
		device, &state_result_); \
	if (!state) \
		return state_result_; \
	if (!(out)) \
	return NVML_ERROR_INVALID_ARGUMENT

/* GETTER is for GPUs only; GETTER_OF_ANY also for MIG instances. */
#define GETTER(out) NVML_BEGIN(nvml_whole_card, out)
#define GETTER_OF_ANY(out) NVML_BEGIN(nvml_device, out)
