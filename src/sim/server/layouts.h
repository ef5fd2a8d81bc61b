/*
 * Machines that people have, as descriptions by name: the cards' models, NUMA nodes, PCIe and NVLinks.
 *
 *   dgx-1v    8 V100, NVLinks as a hybrid cube mesh: one or two to four of the others, none to three
 *   dgx-a100  8 A100, 12 NVLinks each to NVSwitches, by which each reaches all
 *   pcie      8 cards without NVLink: two sockets, two switches each, two cards a switch
 *   mixed     4 A100 in two pairs with NVLink bridges on one socket, 3 L40S and a T4 on the other
 *   h200-mig  2 H200, the first in MIG mode with three instances
 */
#pragma once

/* The text of a description (spec.h); NULL when there is none of that name. */
const char *layout_find(const char *name);
