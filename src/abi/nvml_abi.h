/*
 * The part of the NVML ABI that allot reads or answers, written down from the published nvml.h, so that building allot needs no
 * CUDA toolkit. NVML itself is loaded at run time.
 */
#ifndef ALLOT_ABI_NVML_ABI_H
#define ALLOT_ABI_NVML_ABI_H

#include <stdint.h>

typedef enum nvmlReturn_enum {
	NVML_SUCCESS = 0,
	NVML_ERROR_UNINITIALIZED = 1,
	NVML_ERROR_INVALID_ARGUMENT = 2,
	NVML_ERROR_NOT_SUPPORTED = 3,
	NVML_ERROR_NO_PERMISSION = 4,
	NVML_ERROR_NOT_FOUND = 6,
	NVML_ERROR_INSUFFICIENT_SIZE = 7,
	NVML_ERROR_DRIVER_NOT_LOADED = 9,
	NVML_ERROR_TIMEOUT = 10,
	NVML_ERROR_FUNCTION_NOT_FOUND = 13,
	NVML_ERROR_GPU_IS_LOST = 15,
	NVML_ERROR_NO_DATA = 21,
	NVML_ERROR_ARGUMENT_VERSION_MISMATCH = 25,
	NVML_ERROR_UNKNOWN = 999,
} nvmlReturn_t;

typedef struct nvmlDevice_st *nvmlDevice_t;

/* For nvmlDeviceGetMemoryInfo; in bytes. */
typedef struct nvmlMemory_st {
	unsigned long long total;
	unsigned long long free;
	unsigned long long used;
} nvmlMemory_t;

/* For nvmlDeviceGetMemoryInfo_v2; in bytes. `used` excludes `reserved`. The caller sets version. */
typedef struct nvmlMemory_v2_st {
	unsigned int version;
	unsigned long long total;
	unsigned long long reserved;
	unsigned long long free;
	unsigned long long used;
} nvmlMemory_v2_t;

#define NVML_STRUCT_VERSION(type, ver) ((unsigned int)(sizeof(type) | ((unsigned int)(ver) << 24U)))
#define nvmlMemory_v2 NVML_STRUCT_VERSION(nvmlMemory_v2_t, 2)

/* For nvmlDeviceGetUtilizationRates; in percent. */
typedef struct nvmlUtilization_st {
	unsigned int gpu;
	unsigned int memory;
} nvmlUtilization_t;

/* For nvmlDeviceGetComputeRunningProcesses and similar calls. Memory is in bytes, all ones if unknown. */
typedef struct nvmlProcessInfo_v1_st {
	unsigned int pid;
	unsigned long long usedGpuMemory;
} nvmlProcessInfo_v1_t;

/* The layout of the calls _v2 and _v3. */
typedef struct nvmlProcessInfo_st {
	unsigned int pid;
	unsigned long long usedGpuMemory;
	unsigned int gpuInstanceId; /* all ones without MIG */
	unsigned int computeInstanceId;
} nvmlProcessInfo_t;

/* For nvmlDeviceGetRunningProcessDetailList. The caller sets version and mode. */
typedef struct nvmlProcessDetail_v1_st {
	unsigned int pid;
	unsigned long long usedGpuMemory;
	unsigned int gpuInstanceId;
	unsigned int computeInstanceId;
	unsigned long long usedGpuCcProtectedMemory;
} nvmlProcessDetail_v1_t;

typedef struct nvmlProcessDetailList_v1_st {
	unsigned int version;
	unsigned int mode; /* enum nvml_process_mode */
	unsigned int numProcArrayEntries;
	nvmlProcessDetail_v1_t *procArray;
} nvmlProcessDetailList_t;

enum nvml_process_mode {
	NVML_PROCESS_MODE_COMPUTE = 0,
	NVML_PROCESS_MODE_GRAPHICS = 1,
	NVML_PROCESS_MODE_MPS = 2,
};

/* For nvmlDeviceGetProcessUtilization. timeStamp is in microseconds since 1970; the four values are in percent. */
typedef struct nvmlProcessUtilizationSample_st {
	unsigned int pid;
	unsigned long long timeStamp;
	unsigned int smUtil;
	unsigned int memUtil;
	unsigned int encUtil;
	unsigned int decUtil;
} nvmlProcessUtilizationSample_t;

/*
 * For nvmlDeviceGetProcessesUtilizationInfo. The caller sets all fields of the argument. The call replaces processSamplesCount,
 * the size of procUtilArray, by the number of entries written.
 */
typedef struct nvmlProcessUtilizationInfo_v1_st {
	unsigned long long timeStamp;
	unsigned int pid;
	unsigned int smUtil;
	unsigned int memUtil;
	unsigned int encUtil;
	unsigned int decUtil;
	unsigned int jpgUtil;
	unsigned int ofaUtil;
} nvmlProcessUtilizationInfo_v1_t;

typedef struct nvmlProcessesUtilizationInfo_v1_st {
	unsigned int version;
	unsigned int processSamplesCount;
	unsigned long long lastSeenTimeStamp;
	nvmlProcessUtilizationInfo_v1_t *procUtilArray;
} nvmlProcessesUtilizationInfo_t;

/* For nvmlDeviceGetSamples. */
typedef union nvmlValue_st {
	double dVal;
	int siVal;
	unsigned int uiVal;
	unsigned long ulVal;
	unsigned long long ullVal;
	long long sllVal;
	unsigned short usVal;
} nvmlValue_t;

typedef struct nvmlSample_st {
	unsigned long long timeStamp;
	nvmlValue_t sampleValue;
} nvmlSample_t;

enum nvml_sampling_type {
	NVML_TOTAL_POWER_SAMPLES = 0,
	NVML_GPU_UTILIZATION_SAMPLES = 1,
	NVML_MEMORY_UTILIZATION_SAMPLES = 2,
	NVML_ENC_UTILIZATION_SAMPLES = 3,
	NVML_DEC_UTILIZATION_SAMPLES = 4,
	NVML_JPG_UTILIZATION_SAMPLES = 8,
	NVML_OFA_UTILIZATION_SAMPLES = 9,
};
#define NVML_VALUE_TYPE_UNSIGNED_INT 1

/* For nvmlDeviceGetHandleByUUIDV. The caller sets version and type. */
typedef struct nvmlUUID_v1_st {
	unsigned int version;
	unsigned int type; /* 1: text, 2: bytes */
	union {
		char str[41];
		unsigned char bytes[16];
	} value;
} nvmlUUID_t;

/* For nvmlDeviceGetPciInfo_v3 and nvmlDeviceGetNvLinkRemotePciInfo_v2. */
typedef struct nvmlPciInfo_st {
	char busIdLegacy[16];
	unsigned int domain;
	unsigned int bus;
	unsigned int device;
	unsigned int pciDeviceId;
	unsigned int pciSubSystemId;
	char busId[32];
} nvmlPciInfo_t;

/* For nvmlDeviceGetTopologyCommonAncestor: where the paths of two GPUs to the CPU meet. */
enum nvml_topology_level {
	NVML_TOPOLOGY_INTERNAL = 0, /* on one board */
	NVML_TOPOLOGY_SINGLE = 10,  /* one PCIe switch */
	NVML_TOPOLOGY_MULTIPLE = 20,
	NVML_TOPOLOGY_HOSTBRIDGE = 30,
	NVML_TOPOLOGY_NODE = 40,
	NVML_TOPOLOGY_SYSTEM = 50,
};

/* For nvmlDeviceGetNvLinkRemoteDeviceType. */
enum nvml_nvlink_device {
	NVML_NVLINK_DEVICE_TYPE_GPU = 0,
	NVML_NVLINK_DEVICE_TYPE_SWITCH = 2,
};

#define nvmlProcessDetailList_v1 NVML_STRUCT_VERSION(nvmlProcessDetailList_t, 1)
#define nvmlProcessesUtilizationInfo_v1 NVML_STRUCT_VERSION(nvmlProcessesUtilizationInfo_t, 1)
#define nvmlUUID_v1 NVML_STRUCT_VERSION(nvmlUUID_t, 1)

/* For nvmlEventSetWait_v2: an event of a GPU. For an Xid, eventData is the Xid's number. */
typedef struct nvmlEventSet_st *nvmlEventSet_t;
typedef struct nvmlEventData_st {
	nvmlDevice_t device;
	unsigned long long eventType;
	unsigned long long eventData;
	unsigned int gpuInstanceId;
	unsigned int computeInstanceId;
} nvmlEventData_t;

#define nvmlEventTypeDoubleBitEccError 0x2ull
#define nvmlEventTypeXidCriticalError 0x8ull

/* allot never reads the contents of these structs. The last three types stand for enums in nvml.h. */
typedef struct nvmlUnit_st *nvmlUnit_t;
typedef struct nvmlGpmSample_st *nvmlGpmSample_t;
typedef struct nvmlGpmSupport_st nvmlGpmSupport_t;
typedef struct nvmlAccountingStats_st nvmlAccountingStats_t;
typedef struct nvmlAccountingStats_v2_st nvmlAccountingStats_v2_t;
typedef struct nvmlEncoderSessionInfo_st nvmlEncoderSessionInfo_t;
typedef struct nvmlFBCStats_st nvmlFBCStats_t;
typedef struct nvmlFBCSessionInfo_st nvmlFBCSessionInfo_t;
typedef struct nvmlGpuDynamicPstatesInfo_st nvmlGpuDynamicPstatesInfo_t;
typedef int nvmlGpuTopologyLevel_t;
typedef int nvmlSamplingType_t;
typedef int nvmlValueType_t;

#define NVML_VALUE_NOT_AVAILABLE_ULL (~0ULL)
#define NVML_DEVICE_UUID_BUFFER_SIZE 80
#define NVML_DEVICE_NAME_V2_BUFFER_SIZE 96
#define NVML_SYSTEM_DRIVER_VERSION_BUFFER_SIZE 80

/* For nvmlDeviceGetAttributes_v2 of a MIG instance; memory is in MiB. */
typedef struct nvmlDeviceAttributes_st {
	unsigned int multiprocessorCount;
	unsigned int sharedCopyEngineCount;
	unsigned int sharedDecoderCount;
	unsigned int sharedEncoderCount;
	unsigned int sharedJpegCount;
	unsigned int sharedOfaCount;
	unsigned int gpuInstanceSliceCount;
	unsigned int computeInstanceSliceCount;
	unsigned long long memorySizeMB;
} nvmlDeviceAttributes_t;

#endif
