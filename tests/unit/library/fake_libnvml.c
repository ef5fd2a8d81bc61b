/* libnvidia-ml.so.1 for the same tests. */
#include <string.h>

#include "abi/nvml_abi.h"
#include "fake_libcuda.h"

#define API __attribute__((visibility("default")))

API nvmlReturn_t nvmlDeviceGetMemoryInfo(nvmlDevice_t device, nvmlMemory_t *memory);
API nvmlReturn_t nvmlDeviceGetUUID(nvmlDevice_t device, char *text, unsigned int length);

nvmlReturn_t nvmlDeviceGetMemoryInfo(nvmlDevice_t device, nvmlMemory_t *memory)
{
	*memory = (nvmlMemory_t){ FAKE_MEMORY_BYTES, FAKE_MEMORY_BYTES, 0 };
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetUUID(nvmlDevice_t device, char *text, unsigned int length)
{
	if (length < sizeof(FAKE_UUID_TEXT))
		return NVML_ERROR_INSUFFICIENT_SIZE;
	strcpy(text, FAKE_UUID_TEXT);
	return NVML_SUCCESS;
}
