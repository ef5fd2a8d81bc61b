/* Describes this node's GPUs for its ResourceSlices. Main thread only. */
#pragma once

#include <jansson.h>

struct node;

/* In the format of kube/dra/slice.h; a cordoned or unhealthy GPU has a taint. A new reference, or NULL if out of memory. */
json_t *dra_node_devices(struct node *node);

/*
 * Finds the PCIe root (DRA's standard attribute pcieRoot), like "pci0000:17", of the PCI device `address`. `sysfs` is the
 * directory with a link for each PCI device. Returns -ENOENT if not found.
 */
int dra_pcie_root(const char *sysfs, const char *address, char ret[64]);
