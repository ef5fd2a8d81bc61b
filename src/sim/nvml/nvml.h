/* Inside the simulated libnvidia-ml.so.1. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "sim/client/link.h"
#include "sim/nvml/nvml_table.h"

struct nvmlDevice_st {
	uint32_t card;  /* the server's number */
	uint32_t index; /* NVML's: in the order of PCI addresses; of a MIG instance: on its card */
	struct sim_card_info info;
};

extern struct link nvml_link;

/* Returns an error where a condition holds. */
#define NVML_FAIL_IF(condition, error) \
	do { \
		if (condition) \
			return error; \
	} while (0)
/* An entry that only answers, or hands on. */
#define NVML_FUNCTION(symbol, params, result) \
	nvmlReturn_t symbol params \
	{ \
		return result; \
	}

/* NULL and UNINITIALIZED or INVALID_ARGUMENT in *ret_result, or the device: a card or a MIG instance. */
const struct nvmlDevice_st *nvml_device(nvmlDevice_t device, nvmlReturn_t *ret_result);
/* The same of what is asked of cards alone: of an instance it is NOT_SUPPORTED. */
const struct nvmlDevice_st *nvml_whole_card(nvmlDevice_t device, nvmlReturn_t *ret_result);
/* By the server's number, instances too; NULL when there is no such card. */
struct nvmlDevice_st *nvml_device_at(uint32_t card);
bool nvml_is_up(void);
/* How many cards, and how many devices with their instances. */
uint32_t nvml_devices(void);
nvmlReturn_t nvml_put_text(char *to, unsigned int length, const char *text);
/*
 * What the card is doing now: malloced, the caller's; its processes follow it. NULL with
 * *ret_result set: GPU_IS_LOST when it fell off the bus.
 */
struct sim_card_state *nvml_state(nvmlDevice_t device, nvmlReturn_t *ret_result);

/* Begins a getter: `d` is the device that `find` lets pass, and `out` is where the answer goes. */
#define NVML_BEGIN(find, out) \
	const struct nvmlDevice_st *d; \
	nvmlReturn_t getter_result_; \
	d = find(device, &getter_result_); \
	if (!d) \
		return getter_result_; \
	if (!(out)) \
	return NVML_ERROR_INVALID_ARGUMENT

/* Of cards alone, and of MIG instances as well. */
#define GETTER(out) NVML_BEGIN(nvml_whole_card, out)
#define GETTER_OF_ANY(out) NVML_BEGIN(nvml_device, out)
