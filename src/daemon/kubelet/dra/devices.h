/* What this node's GPUs are, for its ResourceSlice. Main thread only. */
#pragma once

#include <jansson.h>

struct node;

/* As kube/dra/slice.h has them; those that take no new tenants with a taint. A new reference; NULL: no memory. */
json_t *dra_node_devices(struct node *node);

/* "pci0000:17", where sysfs has the device of this PCI address: the standard attribute pcieRoot. -ENOENT. */
int dra_pcie_root(const char *sysfs, const char *address, char ret[64]);
