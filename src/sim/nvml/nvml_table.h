/*
 * The functions that the simulated libnvidia-ml.so.1 exports: every row of abi/nvml_table.h (the
 * functions that allot hooks) and the rows below. Also the parts of NVML's ABI that
 * src/abi/nvml_abi.h lacks. Names, values and layouts are NVIDIA's.
 */
#pragma once

#include "abi/nvml_table.h"

#define NVML_ERROR_ALREADY_INITIALIZED ((nvmlReturn_t)5)

typedef struct nvmlBAR1Memory_st {
	unsigned long long bar1Total;
	unsigned long long bar1Free;
	unsigned long long bar1Used;
} nvmlBAR1Memory_t;

typedef struct nvmlFieldValue_st {
	unsigned int fieldId;
	unsigned int scopeId;
	long long timestamp;
	long long latencyUsec;
	nvmlValueType_t valueType;
	nvmlReturn_t nvmlReturn;
	nvmlValue_t value;
} nvmlFieldValue_t;

#define SIM_NVML_SYSTEM(FN) \
	FN(nvmlInit, (void)) \
	FN(nvmlInit_v2, (void)) \
	FN(nvmlInitWithFlags, (unsigned int flags)) \
	FN(nvmlShutdown, (void)) \
	FN(nvmlSystemGetDriverVersion, (char *version, unsigned int length)) \
	FN(nvmlSystemGetNVMLVersion, (char *version, unsigned int length)) \
	FN(nvmlSystemGetCudaDriverVersion, (int *version)) \
	FN(nvmlSystemGetCudaDriverVersion_v2, (int *version)) \
	FN(nvmlEventSetCreate, (nvmlEventSet_t * set)) \
	FN(nvmlEventSetFree, (nvmlEventSet_t set)) \
	FN(nvmlDeviceRegisterEvents, \
	   (nvmlDevice_t device, unsigned long long types, nvmlEventSet_t set)) \
	FN(nvmlDeviceGetSupportedEventTypes, (nvmlDevice_t device, unsigned long long *types)) \
	FN(nvmlEventSetWait, (nvmlEventSet_t set, nvmlEventData_t * data, unsigned int timeout_ms)) \
	FN(nvmlEventSetWait_v2, \
	   (nvmlEventSet_t set, nvmlEventData_t * data, unsigned int timeout_ms))

#define SIM_NVML_DEVICE(FN) \
	FN(nvmlDeviceGetName, (nvmlDevice_t device, char *name, unsigned int length)) \
	FN(nvmlDeviceGetUUID, (nvmlDevice_t device, char *uuid, unsigned int length)) \
	FN(nvmlDeviceGetSerial, (nvmlDevice_t device, char *serial, unsigned int length)) \
	FN(nvmlDeviceGetMinorNumber, (nvmlDevice_t device, unsigned int *minor)) \
	FN(nvmlDeviceGetBrand, (nvmlDevice_t device, int *brand)) \
	FN(nvmlDeviceGetArchitecture, (nvmlDevice_t device, unsigned int *arch)) \
	FN(nvmlDeviceGetPciInfo_v3, (nvmlDevice_t device, nvmlPciInfo_t * pci)) \
	FN(nvmlDeviceGetCudaComputeCapability, (nvmlDevice_t device, int *major, int *minor)) \
	FN(nvmlDeviceGetNumGpuCores, (nvmlDevice_t device, unsigned int *cores)) \
	FN(nvmlDeviceGetNumaNodeId, (nvmlDevice_t device, unsigned int *node)) \
	FN(nvmlDeviceGetCpuAffinity, (nvmlDevice_t device, unsigned int size, unsigned long *cpus)) \
	FN(nvmlDeviceGetMemoryAffinity, \
	   (nvmlDevice_t device, unsigned int size, unsigned long *nodes, unsigned int scope)) \
	FN(nvmlDeviceGetTopologyCommonAncestor, \
	   (nvmlDevice_t device, nvmlDevice_t other, int *level)) \
	FN(nvmlDeviceGetP2PStatus, \
	   (nvmlDevice_t device, nvmlDevice_t other, int index, int *status)) \
	FN(nvmlDeviceGetNvLinkState, \
	   (nvmlDevice_t device, unsigned int link, unsigned int *active)) \
	FN(nvmlDeviceGetNvLinkVersion, \
	   (nvmlDevice_t device, unsigned int link, unsigned int *version)) \
	FN(nvmlDeviceGetNvLinkCapability, \
	   (nvmlDevice_t device, unsigned int link, int capability, unsigned int *result)) \
	FN(nvmlDeviceGetNvLinkRemotePciInfo_v2, \
	   (nvmlDevice_t device, unsigned int link, nvmlPciInfo_t *pci)) \
	FN(nvmlDeviceGetNvLinkRemoteDeviceType, \
	   (nvmlDevice_t device, unsigned int link, int *type)) \
	FN(nvmlDeviceGetComputeMode, (nvmlDevice_t device, int *mode)) \
	FN(nvmlDeviceGetPersistenceMode, (nvmlDevice_t device, int *mode)) \
	FN(nvmlDeviceGetEccMode, (nvmlDevice_t device, int *current, int *pending)) \
	FN(nvmlDeviceGetPowerManagementLimit, (nvmlDevice_t device, unsigned int *mw)) \
	FN(nvmlDeviceGetEnforcedPowerLimit, (nvmlDevice_t device, unsigned int *mw)) \
	FN(nvmlDeviceGetMaxClockInfo, (nvmlDevice_t device, int type, unsigned int *mhz)) \
	FN(nvmlDeviceGetTemperatureThreshold, \
	   (nvmlDevice_t device, int threshold, unsigned int *degrees)) \
	FN(nvmlDeviceGetMaxPcieLinkGeneration, (nvmlDevice_t device, unsigned int *generation)) \
	FN(nvmlDeviceGetMaxPcieLinkWidth, (nvmlDevice_t device, unsigned int *width)) \
	FN(nvmlDeviceGetCurrPcieLinkGeneration, (nvmlDevice_t device, unsigned int *generation)) \
	FN(nvmlDeviceGetCurrPcieLinkWidth, (nvmlDevice_t device, unsigned int *width)) \
	FN(nvmlDeviceGetFanSpeed, (nvmlDevice_t device, unsigned int *pct)) \
	FN(nvmlDeviceGetAccountingMode, (nvmlDevice_t device, int *mode)) \
	FN(nvmlDeviceGetAccountingBufferSize, (nvmlDevice_t device, unsigned int *size)) \
	FN(nvmlDeviceGetDisplayActive, (nvmlDevice_t device, int *is)) \
	FN(nvmlDeviceGetDisplayMode, (nvmlDevice_t device, int *is)) \
	FN(nvmlDeviceGetDriverModel, (nvmlDevice_t device, int *current, int *pending)) \
	FN(nvmlDeviceGetDriverModel_v2, (nvmlDevice_t device, int *current, int *pending)) \
	FN(nvmlDeviceGetTotalEccErrors, \
	   (nvmlDevice_t device, int type, int counter, unsigned long long *count)) \
	FN(nvmlDeviceGetFieldValues, (nvmlDevice_t device, int count, nvmlFieldValue_t *values))

#define SIM_NVML_STATE(FN) \
	FN(nvmlDeviceGetBAR1MemoryInfo, (nvmlDevice_t device, nvmlBAR1Memory_t * memory)) \
	FN(nvmlDeviceGetPcieThroughput, \
	   (nvmlDevice_t device, int counter, unsigned int *kib_per_s)) \
	FN(nvmlDeviceGetTemperature, (nvmlDevice_t device, int sensor, unsigned int *degrees)) \
	FN(nvmlDeviceGetPowerUsage, (nvmlDevice_t device, unsigned int *mw)) \
	FN(nvmlDeviceGetPerformanceState, (nvmlDevice_t device, int *state)) \
	FN(nvmlDeviceGetClockInfo, (nvmlDevice_t device, int type, unsigned int *mhz))

#define SIM_NVML_MIG(FN) \
	FN(nvmlDeviceGetMigMode, \
	   (nvmlDevice_t device, unsigned int *current, unsigned int *pending)) \
	FN(nvmlDeviceGetMaxMigDeviceCount, (nvmlDevice_t device, unsigned int *count)) \
	FN(nvmlDeviceIsMigDeviceHandle, (nvmlDevice_t device, unsigned int *is)) \
	FN(nvmlDeviceGetDeviceHandleFromMigDeviceHandle, \
	   (nvmlDevice_t device, nvmlDevice_t * card)) \
	FN(nvmlDeviceGetGpuInstanceId, (nvmlDevice_t device, unsigned int *id)) \
	FN(nvmlDeviceGetComputeInstanceId, (nvmlDevice_t device, unsigned int *id)) \
	FN(nvmlDeviceGetAttributes_v2, (nvmlDevice_t device, nvmlDeviceAttributes_t * attributes))

#define SIM_NVML_TABLE(FN) \
	SIM_NVML_SYSTEM(FN) SIM_NVML_DEVICE(FN) SIM_NVML_STATE(FN) SIM_NVML_MIG(FN)

#pragma GCC visibility push(default)
#define DECLARE(symbol, params) nvmlReturn_t symbol params;
#define DECLARE_HOOKED(symbol, hook, params, args) nvmlReturn_t symbol params;
#define DECLARE_NONE(symbol, params, args) nvmlReturn_t symbol params;
SIM_NVML_TABLE(DECLARE)
NVML_TABLE(DECLARE_HOOKED, DECLARE_HOOKED, DECLARE_NONE)
#undef DECLARE
#undef DECLARE_HOOKED
#undef DECLARE_NONE
const char *nvmlErrorString(nvmlReturn_t result);
#pragma GCC visibility pop
