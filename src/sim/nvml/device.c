/* Properties of a device that do not change. */
#include <stdio.h>
#include <string.h>

#include "sim/nvml/nvml.h"

#define SIMPLE_BY(getter, symbol, type, value) \
	nvmlReturn_t symbol(nvmlDevice_t device, type *out) \
	{ \
		getter(out); \
		*out = (type)(value); \
		return NVML_SUCCESS; \
	}
#define SIMPLE(symbol, type, value) SIMPLE_BY(GETTER, symbol, type, value)

#define CORES_OF_SM(info) \
	((info).cc_major == 7 || ((info).cc_major == 8 && (info).cc_minor == 0) ? 64 : 128)

/* Returns a value of nvmlDeviceArchitecture_t. */
static unsigned int architecture_of(const struct sim_card_info *info)
{
	switch (info->cc_major) {
	case 5: return 3;                            /* Maxwell */
	case 6: return 4;                            /* Pascal */
	case 7: return info->cc_minor < 5 ? 5 : 6;   /* Volta, Turing */
	case 8: return info->cc_minor == 9 ? 8 : 7;  /* Ada, Ampere */
	case 9: return 9;                            /* Hopper */
	default: return info->cc_major < 5 ? 2 : 10; /* Kepler, Blackwell */
	}
}

SIMPLE_BY(GETTER_OF_ANY, nvmlDeviceGetIndex, unsigned int, d->index)
SIMPLE(nvmlDeviceGetMinorNumber, unsigned int, d->card)
SIMPLE(nvmlDeviceGetBrand, int, 14) /* NVML_BRAND_NVIDIA */
SIMPLE(nvmlDeviceGetArchitecture, unsigned int, architecture_of(&d->info))
SIMPLE(nvmlDeviceGetNumGpuCores, unsigned int, d->info.sms *CORES_OF_SM(d->info))
SIMPLE_BY(GETTER_OF_ANY, nvmlDeviceGetComputeMode, int, 0)
SIMPLE(nvmlDeviceGetPersistenceMode, int, 1)
SIMPLE(nvmlDeviceGetPowerManagementLimit, unsigned int, 700000)
SIMPLE(nvmlDeviceGetEnforcedPowerLimit, unsigned int, 700000)
SIMPLE(nvmlDeviceGetMaxPcieLinkGeneration, unsigned int, 5)
SIMPLE(nvmlDeviceGetCurrPcieLinkGeneration, unsigned int, 5)
SIMPLE(nvmlDeviceGetMaxPcieLinkWidth, unsigned int, 16)
SIMPLE(nvmlDeviceGetCurrPcieLinkWidth, unsigned int, 16)
SIMPLE(nvmlDeviceGetAccountingMode, int, 0)
SIMPLE(nvmlDeviceGetDisplayActive, int, 0)
SIMPLE(nvmlDeviceGetDisplayMode, int, 0)
SIMPLE(nvmlDeviceGetAccountingBufferSize, unsigned int, 4000)

/* A simulated GPU has no fans, no accounting, and none of the statistics that these calls would return. */
#define NOT_SUPPORTED(symbol, ...) \
	nvmlReturn_t symbol(nvmlDevice_t device, __VA_ARGS__) \
	{ \
		nvmlReturn_t result; \
		return nvml_device(device, &result) ? NVML_ERROR_NOT_SUPPORTED : result; \
	}

NOT_SUPPORTED(nvmlDeviceGetFanSpeed, unsigned int *pct)
NOT_SUPPORTED(nvmlDeviceGetDriverModel, int *current, int *pending)
NOT_SUPPORTED(nvmlDeviceGetDriverModel_v2, int *current, int *pending)
NOT_SUPPORTED(nvmlDeviceGetAccountingStats, unsigned int pid, nvmlAccountingStats_t *stats)
NOT_SUPPORTED(nvmlDeviceGetAccountingStats_v2, nvmlAccountingStats_v2_t *stats)
NOT_SUPPORTED(nvmlDeviceGetAccountingPids, unsigned int *count, unsigned int *pids)
NOT_SUPPORTED(nvmlDeviceGetEncoderStats, unsigned int *sessions, unsigned int *fps,
	      unsigned int *latency_us)
NOT_SUPPORTED(nvmlDeviceGetEncoderSessions, unsigned int *count, nvmlEncoderSessionInfo_t *infos)
NOT_SUPPORTED(nvmlDeviceGetFBCStats, nvmlFBCStats_t *stats)
NOT_SUPPORTED(nvmlDeviceGetFBCSessions, unsigned int *count, nvmlFBCSessionInfo_t *infos)
NOT_SUPPORTED(nvmlDeviceGetDynamicPstatesInfo, nvmlGpuDynamicPstatesInfo_t *info)
NOT_SUPPORTED(nvmlGpmQueryDeviceSupport, nvmlGpmSupport_t *support)
NOT_SUPPORTED(nvmlGpmSampleGet, nvmlGpmSample_t sample)
NOT_SUPPORTED(nvmlGpmMigSampleGet, unsigned int instance, nvmlGpmSample_t sample)

nvmlReturn_t nvmlDeviceGetTotalEccErrors(nvmlDevice_t device, int type, int counter,
					 unsigned long long *count)
{
	GETTER(count && type >= 0 && type < 2 && counter >= 0 && counter < 2);
	NVML_FAIL_IF(d->info.defects & SIM_DEFECT_NO_ECC, NVML_ERROR_NOT_SUPPORTED);
	*count = 0;
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetFieldValues(nvmlDevice_t device, int count, nvmlFieldValue_t *values)
{
	GETTER(count > 0 && values);
	for (int i = 0; i < count; i++)
		values[i].nvmlReturn = NVML_ERROR_NOT_SUPPORTED;
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetTemperatureThreshold(nvmlDevice_t device, int threshold,
					       unsigned int *degrees)
{
	GETTER(degrees && threshold >= 0);
	NVML_FAIL_IF(threshold > 3, NVML_ERROR_NOT_SUPPORTED);
	*degrees = 90;
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetName(nvmlDevice_t device, char *name, unsigned int length)
{
	GETTER_OF_ANY(name);
	return nvml_put_text(name, length, d->info.name);
}

/* For an invalid handle, driver 580 returns INSUFFICIENT_SIZE from this function, and INVALID_ARGUMENT from others. */
nvmlReturn_t nvmlDeviceGetUUID(nvmlDevice_t device, char *uuid, unsigned int length)
{
	nvmlReturn_t result;

	NVML_FAIL_IF(device && uuid && !nvml_device(device, &result) &&
			     result == NVML_ERROR_INVALID_ARGUMENT,
		     NVML_ERROR_INSUFFICIENT_SIZE);
	GETTER_OF_ANY(uuid);
	return nvml_put_text(uuid, length, d->info.uuid);
}

nvmlReturn_t nvmlDeviceGetSerial(nvmlDevice_t device, char *serial, unsigned int length)
{
	char text[32];

	GETTER(serial);
	snprintf(text, sizeof(text), "16500%08u", d->card);
	return nvml_put_text(serial, length, text);
}

static void put_pci(nvmlPciInfo_t *pci, const struct sim_card_info *info)
{
	memset(pci, 0, sizeof(*pci));
	snprintf(pci->busId, sizeof(pci->busId), "%s", info->pci);
	snprintf(pci->busIdLegacy, sizeof(pci->busIdLegacy), "%04X:%02X:%02X.0",
		 info->pci_domain & 0xffff, info->pci_bus & 0xff, info->pci_device & 0xff);
	pci->domain = info->pci_domain;
	pci->bus = info->pci_bus;
	pci->device = info->pci_device;
	pci->pciDeviceId = 0x233510de; /* H200 SXM */
	pci->pciSubSystemId = 0x18be10de;
}

nvmlReturn_t nvmlDeviceGetPciInfo_v3(nvmlDevice_t device, nvmlPciInfo_t *pci)
{
	GETTER(pci);
	put_pci(pci, &d->info);
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetCudaComputeCapability(nvmlDevice_t device, int *major, int *minor)
{
	GETTER_OF_ANY(major && minor);
	*major = d->info.cc_major;
	*minor = d->info.cc_minor;
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetNumaNodeId(nvmlDevice_t device, unsigned int *node)
{
	GETTER(node);
	NVML_FAIL_IF(d->info.numa < 0, NVML_ERROR_NOT_SUPPORTED);
	*node = (unsigned int)d->info.numa;
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetMemoryAffinity(nvmlDevice_t device, unsigned int size,
					 unsigned long *nodes, unsigned int scope)
{
	GETTER(size && nodes);
	NVML_FAIL_IF(d->info.numa < 0, NVML_ERROR_NOT_SUPPORTED);
	memset(nodes, 0, size * sizeof(*nodes));
	if ((unsigned int)d->info.numa / 64 < size)
		nodes[d->info.numa / 64] |= 1ul << d->info.numa % 64;
	return NVML_SUCCESS;
}

/* Simulated NUMA nodes have no CPUs. */
nvmlReturn_t nvmlDeviceGetCpuAffinity(nvmlDevice_t device, unsigned int size, unsigned long *cpus)
{
	GETTER(size && cpus);
	return NVML_ERROR_NOT_SUPPORTED;
}

/* nvmlGpuTopologyLevel_t: 10 one PCIe switch connects the GPUs, 20 several, 30 the host bridge, 40 the NUMA node, 50 none */
static int pcie_ancestor(const struct sim_card_info *a, const struct sim_card_info *b)
{
	unsigned int same = 0;

	if (a->numa != b->numa || a->numa < 0)
		return 50;
	while (same < a->pcie_depth && same < b->pcie_depth && a->pcie[same] == b->pcie[same])
		same++;
	if (same < 2)
		return same ? 30 : 40;
	return same == a->pcie_depth && same == b->pcie_depth ? 10 : 20;
}

nvmlReturn_t nvmlDeviceGetTopologyCommonAncestor(nvmlDevice_t device, nvmlDevice_t other, int *level)
{
	nvmlReturn_t r;
	const struct nvmlDevice_st *o = nvml_whole_card(other, &r);

	GETTER(level && o);
	*level = d == o ? 0 : pcie_ancestor(&d->info, &o->info);
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetP2PStatus(nvmlDevice_t device, nvmlDevice_t other, int index, int *status)
{
	nvmlReturn_t r;
	const struct nvmlDevice_st *o = nvml_whole_card(other, &r);

	GETTER(status && o && d != o);
	/* 0: OK; 3: topology not supported */
	*status = d->info.peers >> o->card & 1 ? 0 : 3;
	return NVML_SUCCESS;
}

/* Counts links in use. If they go to a switch, each peer's entry of info.links[] is already that count. */
static unsigned int links_of(const struct nvmlDevice_st *d)
{
	unsigned int links = 0;

	for (uint32_t i = 0; i < SIM_MAX_CARDS; i++) {
		if (d->info.switched && d->info.links[i])
			return d->info.links[i];
		links += d->info.links[i];
	}
	return links;
}

/* Returns the GPU at the other end of a link, or NULL. Not for a GPU whose links go to a switch. */
static const struct nvmlDevice_st *link_peer(const struct nvmlDevice_st *d, unsigned int link)
{
	for (uint32_t i = 0; i < SIM_MAX_CARDS; i++) {
		if (link < d->info.links[i])
			return nvml_device_at(i);
		link -= d->info.links[i];
	}
	return NULL;
}

/*
 * Begins an entry point about a link. Numbers from links_of() to SIM_LINKS - 1 are valid too: such a link is off, and only calls
 * that ask for its peer fail.
 */
#define LINK_GETTER(out) \
	GETTER(out); \
	NVML_FAIL_IF(!links_of(d), NVML_ERROR_NOT_SUPPORTED); \
	NVML_FAIL_IF(link >= SIM_LINKS, NVML_ERROR_INVALID_ARGUMENT)

nvmlReturn_t nvmlDeviceGetNvLinkState(nvmlDevice_t device, unsigned int link, unsigned int *active)
{
	LINK_GETTER(active);
	*active = link < links_of(d);
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetNvLinkVersion(nvmlDevice_t device, unsigned int link,
					unsigned int *version)
{
	LINK_GETTER(version);
	*version = 4;
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetNvLinkCapability(nvmlDevice_t device, unsigned int link, int capability,
					   unsigned int *result)
{
	LINK_GETTER(result);
	*result = capability == 0; /* P2P */
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetNvLinkRemoteDeviceType(nvmlDevice_t device, unsigned int link, int *type)
{
	LINK_GETTER(type);
	NVML_FAIL_IF(link >= links_of(d), NVML_ERROR_NOT_SUPPORTED);
	*type = d->info.switched ? 2 : 0; /* 2: a switch, 0: a GPU */
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetNvLinkRemotePciInfo_v2(nvmlDevice_t device, unsigned int link,
						 nvmlPciInfo_t *pci)
{
	LINK_GETTER(pci);
	const struct nvmlDevice_st *peer = d->info.switched ? d : link_peer(d, link);
	NVML_FAIL_IF(!peer || link >= links_of(d), NVML_ERROR_NOT_SUPPORTED);
	put_pci(pci, &peer->info);
	if (d->info.switched) {
		/* One of four switches, at addresses that no GPU has. */
		pci->domain = 0;
		pci->bus = 0xf8 + link % 4;
		pci->device = 0;
		pci->pciDeviceId = 0x22a310de;
		snprintf(pci->busId, sizeof(pci->busId), "00000000:%02X:00.0", pci->bus);
		snprintf(pci->busIdLegacy, sizeof(pci->busIdLegacy), "0000:%02X:00.0", pci->bus);
	}
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetEccMode(nvmlDevice_t device, int *current, int *pending)
{
	GETTER(current && pending);
	NVML_FAIL_IF(d->info.defects & SIM_DEFECT_NO_ECC, NVML_ERROR_NOT_SUPPORTED);
	*current = *pending = 1;
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetMaxClockInfo(nvmlDevice_t device, int type, unsigned int *mhz)
{
	GETTER(mhz && type >= 0 && type < 4);
	*mhz = type == 2 ? 3201 : 1980;
	return NVML_SUCCESS;
}
