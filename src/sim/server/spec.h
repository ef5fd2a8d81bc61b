/*
 * The GPUs that a server simulates. A built-in description gives them (`h200`, `h200x4`, or a name of layouts.h), or a file:
 *
 *     # comment
 *     [gpu]
 *     name = NVIDIA H200
 *     memory = 143771 MiB
 *     nvlink = 1, 2
 *
 * Each GPU has one [gpu] section. Keys that a section leaves out have an H200's values. spec.c lists the keys. The times
 * `slice_us`, `gap_us` and `switch_us` are in microseconds. `busy_threads` is the number of threads that keep an SM busy; it
 * determines the part of the GPU that a kernel takes.
 *
 * Topology: `numa = N`. `pcie = B/S/...` gives the number of the host bridge and of each PCIe switch below it: two GPUs with
 * 0/1 share a switch, 0/1 and 0/2 share only a host bridge. `nvlink = 1:2, 3` gives two links to GPU 1 and the remaining links
 * to GPU 3; both ends must name each other. `nvlink = switch:12` gives twelve links to NVSwitches, which connect all GPUs with
 * `nvlink = switch`.
 *
 * Copies between GPUs, in bytes per second: `nvlink_bytes_s` for each link between the two. Without links the rate is
 * `copy_bytes_s`, as to the host, or `far_bytes_s` between NUMA nodes (default: half of `copy_bytes_s`, a guess). A copy keeps
 * only the GPU of its stream busy.
 *
 * `mig = 3g.71gb, 1g.18gb` puts a GPU into MIG mode with these instances, named by NVIDIA's profiles; `mig = on` makes none.
 * Each instance is one more entry of `cards`, after all GPUs.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "sim/wire.h"

struct spec_profile {
	char name[20];       /* such as "3g.71gb" */
	unsigned int slices; /* how many of a GPU's seven compute slices */
	unsigned int memory_gb;
};

struct spec_card {
	struct sim_card_info info;
	/* profiles of the MIG instances to create */
	struct spec_profile profile[SIM_MIG_INSTANCES];
	unsigned int profiles_n;
	uint64_t slice_ns;
	uint64_t gap_ns;    /* lost each time a slice ends while another process has work */
	uint64_t switch_ns; /* lost when a process begins after another process's work has ended */
};

struct spec {
	uint32_t cards_n;
	struct spec_card cards[SIM_MAX_CARDS];
};

/* Loads a built-in description or a file. Returns 0, or -EINVAL or -errno with one line in error (256 bytes are enough). */
int spec_load(struct spec *ret_spec, const char *what, char *error, size_t error_size);
/* Parses the text of a description file. Returns as spec_load(); errors name the file as `origin`. */
int spec_parse(struct spec *ret_spec, const char *text, const char *origin, char *error,
	       size_t error_size);
