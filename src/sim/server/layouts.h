/*
 * Descriptions of real machines by name: GPU models, NUMA nodes, PCIe and NVLinks.
 *
 *   dgx-1v    8 V100 in a hybrid cube mesh; one or two NVLinks to each of four others
 *   dgx-a100  8 A100, each with 12 NVLinks to NVSwitches, which connect all
 *   pcie      8 GPUs without NVLink: two sockets, two switches per socket, two GPUs per switch
 *   mixed     4 A100 in two pairs with NVLink bridges on one socket, 3 L40S and a T4 on the other
 *   h200-mig  2 H200, the first in MIG mode with three instances
 */
#pragma once

/* Returns the text of a description (spec.h), or NULL. */
const char *layout_find(const char *name);
