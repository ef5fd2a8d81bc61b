/*
 * Formats the daemon's topology (docs/reference/protocol.md, topology) as the text of `allot topo`. Pure: JSON in, text out.
 *
 *     across NUMA nodes (SYS)
 *       NUMA node 0: one PCIe switch (PIX)
 *         GPU0   0000:1a:00.0  NVIDIA A40
 *         ...
 *
 *            GPU0   GPU1   NUMA
 *     GPU0   X      PIX    0
 *     GPU1   PIX    X      0
 */
#pragma once

#include <jansson.h>
#include <stdio.h>

void topo_text_write(const json_t *reply, FILE *out);
