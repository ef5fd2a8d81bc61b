/* Describes this node's GPUs for its ResourceSlices. Main thread only. */
#pragma once

#include <jansson.h>

struct node;

/*
 * Returns the devices in the format of kube/dra/slice.h. A GPU that takes no new tenants has a taint. Returns a new reference,
 * or NULL if out of memory.
 */
json_t *dra_node_devices(struct node *node);

/*
 * Finds the PCIe root of the device with this PCI address, like "pci0000:17", below `sysfs`. This is the standard attribute
 * pcieRoot. Returns -ENOENT if not found.
 */
int dra_pcie_root(const char *sysfs, const char *address, char ret[64]);
