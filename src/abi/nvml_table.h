/*
 * Every NVML function whose answer must differ in a tenant, one row each. From each row, src/library/entry/nvml/nvml_wrap.c
 * makes the slot for the real function, the exported wrapper and its entry in the list of exports. The simulated NVML must
 * define every row's symbol.
 *
 * There are three kinds of rows, each a macro that the user of the table defines. Outside a tenant, all call the real function.
 *
 *   LOOK(symbol, hook, params, args)
 *       Lists of devices, and names of processes: calls nvml_<hook>(real function, args...).
 *   CARD(symbol, hook, params, args)
 *       Queries of one device: calls nvml_<hook>(index, real function, args...), with the device's index in
 *       the tenant's list. A device that is not in the list is an invalid argument.
 *   NONE(symbol, params, args)
 *       Values that do not exist for a part of a GPU (utilization of the video engines, performance counters,
 *       accounting of processes): returns "not supported".
 *
 * Functions that describe the GPU itself are not hooked: BAR1 (a window of addresses, not memory that counts toward a quota),
 * nvmlDeviceGetFieldValues (no field has used memory, processes or utilization), nvmlDeviceGetMinorNumber (the name of the
 * device file), clocks, power, temperature, links.
 */
#pragma once

#include "abi/nvml_abi.h"

/* Functions that count or find devices, and one that returns a process's name. */
#define NVML_TABLE_LOOKS(LOOK) \
	LOOK(nvmlDeviceGetCount, count, (unsigned int *count), (count)) \
	LOOK(nvmlDeviceGetCount_v2, count, (unsigned int *count), (count)) \
	LOOK(nvmlDeviceGetHandleByIndex, by_index_v1, \
	     (unsigned int index, nvmlDevice_t *device), (index, device)) \
	LOOK(nvmlDeviceGetHandleByIndex_v2, by_index, \
	     (unsigned int index, nvmlDevice_t *device), (index, device)) \
	LOOK(nvmlDeviceGetHandleByUUID, by_text, \
	     (const char *uuid, nvmlDevice_t *device), (uuid, device)) \
	LOOK(nvmlDeviceGetHandleByUUIDV, by_uuid, \
	     (const nvmlUUID_t *uuid, nvmlDevice_t *device), (uuid, device)) \
	LOOK(nvmlDeviceGetHandleByPciBusId, by_text, \
	     (const char *id, nvmlDevice_t *device), (id, device)) \
	LOOK(nvmlDeviceGetHandleByPciBusId_v2, by_text, \
	     (const char *id, nvmlDevice_t *device), (id, device)) \
	LOOK(nvmlDeviceGetHandleBySerial, by_text, \
	     (const char *serial, nvmlDevice_t *device), (serial, device)) \
	LOOK(nvmlUnitGetDevices, unit_devices, \
	     (nvmlUnit_t unit, unsigned int *count, nvmlDevice_t *devices), \
	     (unit, count, devices)) \
	LOOK(nvmlSystemGetTopologyGpuSet, gpus_of_cpu, \
	     (unsigned int cpu, unsigned int *count, nvmlDevice_t *devices), \
	     (cpu, count, devices)) \
	LOOK(nvmlDeviceGetMigDeviceHandleByIndex, mig_device, \
	     (nvmlDevice_t device, unsigned int index, nvmlDevice_t *instance), \
	     (device, index, instance)) \
	LOOK(nvmlSystemGetProcessName, process_name, \
	     (unsigned int pid, char *name, unsigned int length), (pid, name, length))

/* A device's index, memory and utilization. */
#define NVML_TABLE_CARD(CARD) \
	CARD(nvmlDeviceGetIndex, index, \
	     (nvmlDevice_t device, unsigned int *index), (device, index)) \
	CARD(nvmlDeviceGetTopologyNearestGpus, nearest_gpus, \
	     (nvmlDevice_t device, nvmlGpuTopologyLevel_t level, unsigned int *count, \
	      nvmlDevice_t *devices), (device, level, count, devices)) \
	CARD(nvmlDeviceGetMemoryInfo, memory, \
	     (nvmlDevice_t device, nvmlMemory_t *memory), (device, memory)) \
	CARD(nvmlDeviceGetMemoryInfo_v2, memory_v2, \
	     (nvmlDevice_t device, nvmlMemory_v2_t *memory), (device, memory)) \
	CARD(nvmlDeviceGetUtilizationRates, utilization, \
	     (nvmlDevice_t device, nvmlUtilization_t *rates), (device, rates)) \
	CARD(nvmlDeviceGetSamples, samples, \
	     (nvmlDevice_t device, nvmlSamplingType_t type, unsigned long long since_us, \
	      nvmlValueType_t *value_type, unsigned int *count, nvmlSample_t *samples), \
	     (device, type, since_us, value_type, count, samples))

/* A device's processes. */
#define NVML_TABLE_PROCESSES(CARD) \
	CARD(nvmlDeviceGetComputeRunningProcesses, compute_processes_v1, \
	     (nvmlDevice_t device, unsigned int *count, nvmlProcessInfo_v1_t *infos), \
	     (device, count, infos)) \
	CARD(nvmlDeviceGetComputeRunningProcesses_v2, compute_processes, \
	     (nvmlDevice_t device, unsigned int *count, nvmlProcessInfo_t *infos), \
	     (device, count, infos)) \
	CARD(nvmlDeviceGetComputeRunningProcesses_v3, compute_processes, \
	     (nvmlDevice_t device, unsigned int *count, nvmlProcessInfo_t *infos), \
	     (device, count, infos)) \
	CARD(nvmlDeviceGetGraphicsRunningProcesses, other_processes_v1, \
	     (nvmlDevice_t device, unsigned int *count, nvmlProcessInfo_v1_t *infos), \
	     (device, count, infos)) \
	CARD(nvmlDeviceGetGraphicsRunningProcesses_v2, other_processes, \
	     (nvmlDevice_t device, unsigned int *count, nvmlProcessInfo_t *infos), \
	     (device, count, infos)) \
	CARD(nvmlDeviceGetGraphicsRunningProcesses_v3, other_processes, \
	     (nvmlDevice_t device, unsigned int *count, nvmlProcessInfo_t *infos), \
	     (device, count, infos)) \
	CARD(nvmlDeviceGetMPSComputeRunningProcesses, other_processes_v1, \
	     (nvmlDevice_t device, unsigned int *count, nvmlProcessInfo_v1_t *infos), \
	     (device, count, infos)) \
	CARD(nvmlDeviceGetMPSComputeRunningProcesses_v2, other_processes, \
	     (nvmlDevice_t device, unsigned int *count, nvmlProcessInfo_t *infos), \
	     (device, count, infos)) \
	CARD(nvmlDeviceGetMPSComputeRunningProcesses_v3, other_processes, \
	     (nvmlDevice_t device, unsigned int *count, nvmlProcessInfo_t *infos), \
	     (device, count, infos)) \
	CARD(nvmlDeviceGetRunningProcessDetailList, process_details, \
	     (nvmlDevice_t device, nvmlProcessDetailList_t *list), (device, list)) \
	CARD(nvmlDeviceGetProcessUtilization, process_utilization, \
	     (nvmlDevice_t device, nvmlProcessUtilizationSample_t *samples, unsigned int *count, \
	      unsigned long long since_us), (device, samples, count, since_us)) \
	CARD(nvmlDeviceGetProcessesUtilizationInfo, processes_utilization, \
	     (nvmlDevice_t device, nvmlProcessesUtilizationInfo_t *info), (device, info))

/* Functions that have values only for the whole GPU: in a tenant they return "not supported". */
#define NVML_TABLE_NONE(NONE) \
	NONE(nvmlDeviceGetAccountingStats, \
	     (nvmlDevice_t device, unsigned int pid, nvmlAccountingStats_t *stats), \
	     (device, pid, stats)) \
	NONE(nvmlDeviceGetAccountingStats_v2, \
	     (nvmlDevice_t device, nvmlAccountingStats_v2_t *stats), (device, stats)) \
	NONE(nvmlDeviceGetAccountingPids, \
	     (nvmlDevice_t device, unsigned int *count, unsigned int *pids), \
	     (device, count, pids)) \
	NONE(nvmlDeviceGetEncoderUtilization, \
	     (nvmlDevice_t device, unsigned int *pct, unsigned int *period_us), \
	     (device, pct, period_us)) \
	NONE(nvmlDeviceGetDecoderUtilization, \
	     (nvmlDevice_t device, unsigned int *pct, unsigned int *period_us), \
	     (device, pct, period_us)) \
	NONE(nvmlDeviceGetJpgUtilization, \
	     (nvmlDevice_t device, unsigned int *pct, unsigned int *period_us), \
	     (device, pct, period_us)) \
	NONE(nvmlDeviceGetOfaUtilization, \
	     (nvmlDevice_t device, unsigned int *pct, unsigned int *period_us), \
	     (device, pct, period_us)) \
	NONE(nvmlDeviceGetEncoderStats, \
	     (nvmlDevice_t device, unsigned int *sessions, unsigned int *fps, \
	      unsigned int *latency_us), (device, sessions, fps, latency_us)) \
	NONE(nvmlDeviceGetEncoderSessions, \
	     (nvmlDevice_t device, unsigned int *count, nvmlEncoderSessionInfo_t *infos), \
	     (device, count, infos)) \
	NONE(nvmlDeviceGetFBCStats, \
	     (nvmlDevice_t device, nvmlFBCStats_t *stats), (device, stats)) \
	NONE(nvmlDeviceGetFBCSessions, \
	     (nvmlDevice_t device, unsigned int *count, nvmlFBCSessionInfo_t *infos), \
	     (device, count, infos)) \
	NONE(nvmlDeviceGetDynamicPstatesInfo, \
	     (nvmlDevice_t device, nvmlGpuDynamicPstatesInfo_t *info), (device, info)) \
	NONE(nvmlGpmQueryDeviceSupport, \
	     (nvmlDevice_t device, nvmlGpmSupport_t *support), (device, support)) \
	NONE(nvmlGpmSampleGet, (nvmlDevice_t device, nvmlGpmSample_t sample), (device, sample)) \
	NONE(nvmlGpmMigSampleGet, \
	     (nvmlDevice_t device, unsigned int instance, nvmlGpmSample_t sample), \
	     (device, instance, sample))

#define NVML_TABLE(LOOK, CARD, NONE) \
	NVML_TABLE_LOOKS(LOOK) NVML_TABLE_CARD(CARD) NVML_TABLE_PROCESSES(CARD) NVML_TABLE_NONE(NONE)

/* Functions that the library calls but does not hook. */
#define NVML_CALLS(CALL) \
	CALL(nvmlDeviceGetUUID, (nvmlDevice_t device, char *uuid, unsigned int length)) \
	CALL(nvmlDeviceGetDeviceHandleFromMigDeviceHandle, \
	     (nvmlDevice_t device, nvmlDevice_t *card)) \
	CALL(nvmlDeviceGetGpuInstanceId, (nvmlDevice_t device, unsigned int *id)) \
	CALL(nvmlDeviceGetComputeInstanceId, (nvmlDevice_t device, unsigned int *id))
