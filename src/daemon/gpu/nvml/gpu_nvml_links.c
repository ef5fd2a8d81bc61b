/* Finds where cards are in the machine and how they are linked, from NVML or else sysfs. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "daemon/gpu/nvml/gpu_nvml.h"

#define NUMA_WORDS 16 /* words of 64 NUMA nodes each */
#define AFFINITY_OF_NODE 0
#define VENDOR_NVIDIA 0x10de
/* NVLinks are asked about up to this number. A card with fewer returns an error for higher numbers. */
#define LINKS_MOST 64

static bool read_number(const char *pci, const char *name, int *ret)
{
	char path[128];

	snprintf(path, sizeof(path), "/sys/bus/pci/devices/%s/%s", pci, name);
	cleanup_file FILE *file = fopen(path, "re");
	return file && fscanf(file, "%i", ret) == 1;
}

/* True only if the driver names exactly one NUMA node as nearest to the card. */
static bool numa_by_driver(struct gpu *gpu, unsigned index, unsigned *ret)
{
	unsigned long words[NUMA_WORDS] = { 0 };
	unsigned count = 0;

	if (!gpu->numa_nodes || gpu->numa_nodes(gpu->device[index].card, NUMA_WORDS, words,
						AFFINITY_OF_NODE) != NVML_SUCCESS)
		return false;
	for (unsigned i = 0; i < NUMA_WORDS * 64; i++)
		if (words[i / 64] >> i % 64 & 1) {
			*ret = i;
			count++;
		}
	return count == 1;
}

/* The kernel gives -1 if the firmware does not report the NUMA node. */
static bool numa_by_sysfs(const char *pci, unsigned *ret)
{
	int vendor, node;

	if (!*pci || !read_number(pci, "vendor", &vendor) || vendor != VENDOR_NVIDIA ||
	    !read_number(pci, "numa_node", &node) || node < 0)
		return false;
	*ret = (unsigned)node;
	return true;
}

struct gpu_locality gpu_nvml_locality(struct gpu *gpu, unsigned index)
{
	struct gpu_locality locality = { 0 };
	nvmlPciInfo_t pci = { 0 };

	if (gpu->pci && gpu->pci(gpu->device[index].card, &pci) == NVML_SUCCESS)
		snprintf(locality.pci, sizeof(locality.pci), "%04x:%02x:%02x.0", pci.domain,
			 pci.bus, pci.device);
	locality.numa_known = numa_by_driver(gpu, index, &locality.numa) ||
			      numa_by_sysfs(locality.pci, &locality.numa);
	return locality;
}

static enum gpu_way way(struct gpu *gpu, unsigned a, unsigned b)
{
	nvmlGpuTopologyLevel_t level;

	if (gpu->device[a].card == gpu->device[b].card)
		return GPU_WAY_PSB;
	if (!gpu->ancestor ||
	    gpu->ancestor(gpu->device[a].card, gpu->device[b].card, &level) != NVML_SUCCESS)
		return GPU_WAY_UNKNOWN;
	switch (level) {
	case NVML_TOPOLOGY_INTERNAL: return GPU_WAY_PSB;
	case NVML_TOPOLOGY_SINGLE: return GPU_WAY_PIX;
	case NVML_TOPOLOGY_MULTIPLE: return GPU_WAY_PXB;
	case NVML_TOPOLOGY_HOSTBRIDGE: return GPU_WAY_PHB;
	case NVML_TOPOLOGY_NODE: return GPU_WAY_NODE;
	case NVML_TOPOLOGY_SYSTEM: return GPU_WAY_SYS;
	default: return GPU_WAY_UNKNOWN;
	}
}

/* The other ends of a card's active NVLinks. */
struct ends {
	bool is_known; /* `self`, the card's PCI address, is valid */
	nvmlPciInfo_t self;
	unsigned switched; /* number of links that end at an NVSwitch */
	unsigned count;    /* number of links that end elsewhere: their ends are in `end` */
	nvmlPciInfo_t end[LINKS_MOST];
};

/* Leaves out links whose ends the driver does not describe. */
static void read_ends(struct gpu *gpu, unsigned index, struct ends *ret)
{
	nvmlDevice_t device = gpu->device[index].card;

	/* A MIG instance has no NVLink. */
	if (gpu->device[index].is_instance)
		return;
	ret->is_known = gpu->pci && gpu->pci(device, &ret->self) == NVML_SUCCESS;
	for (unsigned link = 0; gpu->link_state && link < LINKS_MOST; link++) {
		unsigned active = 0, type = NVML_NVLINK_DEVICE_TYPE_GPU;
		nvmlReturn_t r = gpu->link_state(device, link, &active);
		if (r == NVML_ERROR_INVALID_ARGUMENT)
			return;
		if (r != NVML_SUCCESS || !active)
			continue;
		if (gpu->link_type && gpu->link_type(device, link, &type) == NVML_SUCCESS &&
		    type == NVML_NVLINK_DEVICE_TYPE_SWITCH)
			ret->switched++;
		else if (gpu->link_pci &&
			 gpu->link_pci(device, link, &ret->end[ret->count]) == NVML_SUCCESS)
			ret->count++;
	}
}

/* The direct links, plus the links through NVSwitches. The card with fewer links to NVSwitches limits the latter. */
static unsigned nvlinks(const struct ends *a, const struct ends *b)
{
	unsigned links = a->switched < b->switched ? a->switched : b->switched;

	for (unsigned i = 0; b->is_known && i < a->count; i++)
		links += a->end[i].domain == b->self.domain && a->end[i].bus == b->self.bus &&
			 a->end[i].device == b->self.device;
	return links;
}

int gpu_nvml_links(struct gpu *gpu, struct gpu_link *ret, struct error *err)
{
	unsigned count = gpu->device_count;
	cleanup_free struct ends *ends = calloc(count, sizeof(*ends));

	if (!ends)
		return error_set_errno(err, ENOMEM, "NVLinks");
	for (unsigned i = 0; i < count; i++)
		read_ends(gpu, i, &ends[i]);
	for (unsigned a = 0; a < count; a++) {
		ret[a * count + a] = (struct gpu_link){ 0 };
		for (unsigned b = a + 1; b < count; b++) {
			struct gpu_link link = { .nvlinks = nvlinks(&ends[a], &ends[b]),
						 .way = way(gpu, a, b) };
			ret[a * count + b] = ret[b * count + a] = link;
		}
	}
	return 0;
}
