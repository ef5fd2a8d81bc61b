/*
 * What the simulated libnvidia-ml.so.1 exports, one row a function, and the parts of NVML's ABI
 * that src/driver/nvml_abi.h does not have. Names, values and layouts are NVIDIA's.
 */
#ifndef ALLOT_SIM_NVML_TABLE_H
#define ALLOT_SIM_NVML_TABLE_H

#include "driver/nvml_abi.h"

#define NVML_ERROR_ALREADY_INITIALIZED ((nvmlReturn_t)5)
#define NVML_ERROR_ARGUMENT_VERSION_MISMATCH ((nvmlReturn_t)25)
#define NVML_EVENT_XID 0x8ull

typedef struct nvmlEventSet_st *nvmlEventSet_t;

typedef struct nvmlUtilization_st {
	unsigned int gpu;
	unsigned int memory;
} nvmlUtilization_t;

typedef struct nvmlProcessInfo_v1_st {
	unsigned int pid;
	unsigned long long usedGpuMemory;
} nvmlProcessInfo_v1_t;

typedef struct nvmlProcessUtilizationSample_st {
	unsigned int pid;
	unsigned long long timeStamp;
	unsigned int smUtil;
	unsigned int memUtil;
	unsigned int encUtil;
	unsigned int decUtil;
} nvmlProcessUtilizationSample_t;

typedef union nvmlValue_st {
	double dVal;
	int siVal;
	unsigned int uiVal;
	unsigned long long ullVal;
} nvmlValue_t;

typedef struct nvmlSample_st {
	unsigned long long timeStamp;
	nvmlValue_t sampleValue;
} nvmlSample_t;

typedef struct nvmlPciInfo_st {
	char busIdLegacy[16];
	unsigned int domain;
	unsigned int bus;
	unsigned int device;
	unsigned int pciDeviceId;
	unsigned int pciSubSystemId;
	char busId[32];
} nvmlPciInfo_t;

typedef struct nvmlBAR1Memory_st {
	unsigned long long bar1Total;
	unsigned long long bar1Free;
	unsigned long long bar1Used;
} nvmlBAR1Memory_t;

typedef struct nvmlEventData_st {
	nvmlDevice_t device;
	unsigned long long eventType;
	unsigned long long eventData;
	unsigned int gpuInstanceId;
	unsigned int computeInstanceId;
} nvmlEventData_t;

#define NVML_TABLE_SYSTEM(FN) \
	FN(nvmlInit, (void)) \
	FN(nvmlInit_v2, (void)) \
	FN(nvmlInitWithFlags, (unsigned int flags)) \
	FN(nvmlShutdown, (void)) \
	FN(nvmlSystemGetDriverVersion, (char *version, unsigned int length)) \
	FN(nvmlSystemGetNVMLVersion, (char *version, unsigned int length)) \
	FN(nvmlSystemGetCudaDriverVersion, (int *version)) \
	FN(nvmlSystemGetCudaDriverVersion_v2, (int *version)) \
	FN(nvmlSystemGetProcessName, (unsigned int pid, char *name, unsigned int length)) \
	FN(nvmlDeviceGetCount, (unsigned int *count)) \
	FN(nvmlDeviceGetCount_v2, (unsigned int *count)) \
	FN(nvmlDeviceGetHandleByIndex, (unsigned int index, nvmlDevice_t *device)) \
	FN(nvmlDeviceGetHandleByIndex_v2, (unsigned int index, nvmlDevice_t *device)) \
	FN(nvmlDeviceGetHandleByUUID, (const char *uuid, nvmlDevice_t *device)) \
	FN(nvmlDeviceGetHandleByPciBusId, (const char *id, nvmlDevice_t *device)) \
	FN(nvmlDeviceGetHandleByPciBusId_v2, (const char *id, nvmlDevice_t *device)) \
	FN(nvmlEventSetCreate, (nvmlEventSet_t * set)) \
	FN(nvmlEventSetFree, (nvmlEventSet_t set)) \
	FN(nvmlDeviceRegisterEvents, \
	   (nvmlDevice_t device, unsigned long long types, nvmlEventSet_t set)) \
	FN(nvmlDeviceGetSupportedEventTypes, (nvmlDevice_t device, unsigned long long *types)) \
	FN(nvmlEventSetWait, (nvmlEventSet_t set, nvmlEventData_t * data, unsigned int timeout_ms)) \
	FN(nvmlEventSetWait_v2, \
	   (nvmlEventSet_t set, nvmlEventData_t * data, unsigned int timeout_ms))

#define NVML_TABLE_DEVICE(FN) \
	FN(nvmlDeviceGetName, (nvmlDevice_t device, char *name, unsigned int length)) \
	FN(nvmlDeviceGetUUID, (nvmlDevice_t device, char *uuid, unsigned int length)) \
	FN(nvmlDeviceGetSerial, (nvmlDevice_t device, char *serial, unsigned int length)) \
	FN(nvmlDeviceGetIndex, (nvmlDevice_t device, unsigned int *index)) \
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
	FN(nvmlDeviceGetMigMode, \
	   (nvmlDevice_t device, unsigned int *current, unsigned int *pending)) \
	FN(nvmlDeviceGetMaxMigDeviceCount, (nvmlDevice_t device, unsigned int *count)) \
	FN(nvmlDeviceIsMigDeviceHandle, (nvmlDevice_t device, unsigned int *is)) \
	FN(nvmlDeviceGetComputeMode, (nvmlDevice_t device, int *mode)) \
	FN(nvmlDeviceGetPersistenceMode, (nvmlDevice_t device, int *mode)) \
	FN(nvmlDeviceGetEccMode, (nvmlDevice_t device, int *current, int *pending)) \
	FN(nvmlDeviceGetPowerManagementLimit, (nvmlDevice_t device, unsigned int *mw)) \
	FN(nvmlDeviceGetEnforcedPowerLimit, (nvmlDevice_t device, unsigned int *mw)) \
	FN(nvmlDeviceGetMaxClockInfo, (nvmlDevice_t device, int type, unsigned int *mhz))

#define NVML_TABLE_STATE(FN) \
	FN(nvmlDeviceGetMemoryInfo, (nvmlDevice_t device, nvmlMemory_t * memory)) \
	FN(nvmlDeviceGetMemoryInfo_v2, (nvmlDevice_t device, nvmlMemory_v2_t * memory)) \
	FN(nvmlDeviceGetBAR1MemoryInfo, (nvmlDevice_t device, nvmlBAR1Memory_t * memory)) \
	FN(nvmlDeviceGetUtilizationRates, (nvmlDevice_t device, nvmlUtilization_t * rates)) \
	FN(nvmlDeviceGetComputeRunningProcesses, \
	   (nvmlDevice_t device, unsigned int *count, nvmlProcessInfo_v1_t *infos)) \
	FN(nvmlDeviceGetComputeRunningProcesses_v2, \
	   (nvmlDevice_t device, unsigned int *count, nvmlProcessInfo_t *infos)) \
	FN(nvmlDeviceGetComputeRunningProcesses_v3, \
	   (nvmlDevice_t device, unsigned int *count, nvmlProcessInfo_t *infos)) \
	FN(nvmlDeviceGetGraphicsRunningProcesses_v2, \
	   (nvmlDevice_t device, unsigned int *count, nvmlProcessInfo_t *infos)) \
	FN(nvmlDeviceGetGraphicsRunningProcesses_v3, \
	   (nvmlDevice_t device, unsigned int *count, nvmlProcessInfo_t *infos)) \
	FN(nvmlDeviceGetMPSComputeRunningProcesses_v3, \
	   (nvmlDevice_t device, unsigned int *count, nvmlProcessInfo_t *infos)) \
	FN(nvmlDeviceGetProcessUtilization, \
	   (nvmlDevice_t device, nvmlProcessUtilizationSample_t * samples, unsigned int *count, \
	    unsigned long long since_us)) \
	FN(nvmlDeviceGetSamples, (nvmlDevice_t device, int type, unsigned long long since_us, \
				  int *value_type, unsigned int *count, nvmlSample_t *samples)) \
	FN(nvmlDeviceGetTemperature, (nvmlDevice_t device, int sensor, unsigned int *degrees)) \
	FN(nvmlDeviceGetPowerUsage, (nvmlDevice_t device, unsigned int *mw)) \
	FN(nvmlDeviceGetPerformanceState, (nvmlDevice_t device, int *state)) \
	FN(nvmlDeviceGetClockInfo, (nvmlDevice_t device, int type, unsigned int *mhz))

#define NVML_TABLE(FN) NVML_TABLE_SYSTEM(FN) NVML_TABLE_DEVICE(FN) NVML_TABLE_STATE(FN)

#pragma GCC visibility push(default)
#define DECLARE(symbol, params) nvmlReturn_t symbol params;
NVML_TABLE(DECLARE)
#undef DECLARE
const char *nvmlErrorString(nvmlReturn_t result);
#pragma GCC visibility pop

#endif
