/* Declarations that the files of the simulated libnvidia-ml.so.1 share. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "sim/client/server_link.h"
#include "sim/nvml/nvml_table.h"

struct nvmlDevice_st {
	uint32_t card; /* the server's number of the card */
	/* NVML's index, in the order of PCI addresses; for a MIG instance, its index on its card */
	uint32_t index;
	struct sim_card_info info;
};

extern struct link nvml_link;

/* Returns the error if the condition holds. */
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

/*
 * Returns the card or MIG instance of a handle. If there is none, returns NULL with UNINITIALIZED
 * or INVALID_ARGUMENT in *ret_result.
 */
const struct nvmlDevice_st *nvml_device(nvmlDevice_t device, nvmlReturn_t *ret_result);
/*
 * As nvml_device, for questions that only a card can answer: for an instance returns NULL with
 * NOT_SUPPORTED.
 */
const struct nvmlDevice_st *nvml_whole_card(nvmlDevice_t device, nvmlReturn_t *ret_result);
/* Finds a card or instance by the server's number. Returns NULL if there is none. */
struct nvmlDevice_st *nvml_device_at(uint32_t card);
bool nvml_is_up(void);
/* Returns the number of cards and MIG instances together. */
uint32_t nvml_devices(void);
nvmlReturn_t nvml_put_text(char *to, unsigned int length, const char *text);
/*
 * Returns the present state of the card, followed by its processes; the caller frees it. On failure
 * returns NULL and sets *ret_result, to GPU_IS_LOST if the card fell off the bus.
 */
struct sim_card_state *nvml_state(nvmlDevice_t device, nvmlReturn_t *ret_result);

/*
 * Begins a getter. `d` becomes the device that `find` returns; `out` is the caller's pointer for
 * the answer. The getter returns an error if there is no device or `out` is NULL.
 */
#define NVML_BEGIN(find, out) \
	const struct nvmlDevice_st *d; \
	nvmlReturn_t getter_result_; \
	d = find(device, &getter_result_); \
	if (!d) \
		return getter_result_; \
	if (!(out)) \
	return NVML_ERROR_INVALID_ARGUMENT

/* GETTER is for cards only; GETTER_OF_ANY also for MIG instances. */
#define GETTER(out) NVML_BEGIN(nvml_whole_card, out)
#define GETTER_OF_ANY(out) NVML_BEGIN(nvml_device, out)
