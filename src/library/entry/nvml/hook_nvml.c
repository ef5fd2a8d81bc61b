#include "library/entry/nvml/nvml_card.h"
#include "library/entry/nvml/nvml_hooks.h"
#include "library/entry/nvml/nvml_time.h"
#include "library/memory/ledger.h"

DEFINE_CARD_HOOK(nvml_index, get, (nvmlDevice_t device, unsigned int *index))
{
	if (!index)
		return NVML_ERROR_INVALID_ARGUMENT;
	/* A MIG instance has index 0 on its GPU, because the tenant has no other instance there. */
	*index = nvml_is_instance(card) ? 0 : (unsigned int)card;
	return NVML_SUCCESS;
}

static void virtual_memory(int card, unsigned long long *total, unsigned long long *free_bytes,
			   unsigned long long *used_bytes)
{
	uint64_t quota = ledger_quota(card), used = ledger_used(card);

	if (quota >= *total)
		quota = *total;
	uint64_t left = used < quota ? quota - used : 0;
	*free_bytes = *free_bytes < left ? *free_bytes : left;
	*used_bytes = used < quota ? used : quota;
	*total = quota;
}

/* Without privileges, NVML does not report the memory of a GPU in MIG mode, so use the tenant's instance. */
static nvmlDevice_t whose_memory(int card, nvmlDevice_t device)
{
	nvmlDevice_t instance;

	return nvml_is_instance(card) && nvml_device_of(card, &instance) == NVML_SUCCESS ? instance
											 : device;
}

DEFINE_CARD_HOOK(nvml_memory, get, (nvmlDevice_t device, nvmlMemory_t *memory))
{
	nvmlReturn_t result = get(whose_memory(card, device), memory);

	if (result == NVML_SUCCESS)
		virtual_memory(card, &memory->total, &memory->free, &memory->used);
	return result;
}

DEFINE_CARD_HOOK(nvml_memory_v2, get, (nvmlDevice_t device, nvmlMemory_v2_t *memory))
{
	nvmlReturn_t result = get(whose_memory(card, device), memory);

	if (result == NVML_SUCCESS) {
		virtual_memory(card, &memory->total, &memory->free, &memory->used);
		memory->reserved = 0; /* the driver's own part is outside the quota */
	}
	return result;
}

static unsigned int memory_pct(int card)
{
	return nvml_card_memory_pct(card, ledger_used(card));
}

DEFINE_CARD_HOOK(nvml_utilization, get, (nvmlDevice_t device, nvmlUtilization_t *rates))
{
	if (!rates)
		return NVML_ERROR_INVALID_ARGUMENT;
	*rates = (nvmlUtilization_t){ nvml_card_busy_pct(card), memory_pct(card) };
	return NVML_SUCCESS;
}

static nvmlReturn_t put_sample(unsigned int pct, unsigned long long since_us,
			       nvmlValueType_t *value_type, unsigned int *count,
			       nvmlSample_t *samples)
{
	unsigned long long now_us = nvml_now_us();

	if (!value_type || !count || (samples && !*count))
		return NVML_ERROR_INVALID_ARGUMENT;
	*value_type = NVML_VALUE_TYPE_UNSIGNED_INT;
	if (samples && now_us <= since_us)
		return NVML_ERROR_NOT_FOUND;
	*count = 1;
	if (samples)
		*samples = (nvmlSample_t){ .timeStamp = now_us, .sampleValue.uiVal = pct };
	return NVML_SUCCESS;
}

DEFINE_CARD_HOOK(nvml_samples, get,
		 (nvmlDevice_t device, nvmlSamplingType_t type, unsigned long long since_us,
		  nvmlValueType_t *value_type, unsigned int *count, nvmlSample_t *samples))
{
	switch ((enum nvml_sampling_type)type) {
	case NVML_GPU_UTILIZATION_SAMPLES:
		return put_sample(nvml_card_busy_pct(card), since_us, value_type, count, samples);
	case NVML_MEMORY_UTILIZATION_SAMPLES:
		return put_sample(memory_pct(card), since_us, value_type, count, samples);
	case NVML_ENC_UTILIZATION_SAMPLES:
	case NVML_DEC_UTILIZATION_SAMPLES:
	case NVML_JPG_UTILIZATION_SAMPLES:
	case NVML_OFA_UTILIZATION_SAMPLES: return NVML_ERROR_NOT_SUPPORTED;
	default: return get(device, type, since_us, value_type, count, samples);
	}
}
