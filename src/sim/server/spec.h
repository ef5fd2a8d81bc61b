/*
 * What cards a server simulates: a built-in description (`h200`, `h200x4`, or a machine's layout:
 * layouts.h) or a file of
 *
 *     # comment
 *     [card]
 *     name = NVIDIA H200
 *     memory = 143771 MiB
 *     nvlink = 1, 2
 *
 * with one [card] section a card. What a section leaves out is as on an H200. The keys are listed
 * in spec.c, one row each; those of time (`slice_us`, `gap_us`, `switch_us`) are microseconds. `busy_threads` of an SM
 * keep it busy: what part of the card a kernel takes follows from that.
 *
 * How cards hang together: `numa = N`; `pcie = B/S/...`, the number of the host bridge and of each PCIe
 * switch below it down to the card, so that 0/1 and 0/1 share a switch, 0/1 and 0/2 a host bridge;
 * `nvlink = 1:2, 3` for two links to card 1 and what is left to card 3, both ends saying the same;
 * `nvlink = switch:12` for twelve to NVSwitches, which reach all cards that say so.
 *
 * What a copy between cards costs, in bytes a second: `nvlink_bytes_s` for each link that they have between
 * them; without links `copy_bytes_s`, as to the host, or `far_bytes_s` where they are of two NUMA nodes (half of
 * that, if it is not said: a guess, as the rates of the layouts are NVIDIA's and PCI-SIG's figures). The card
 * whose stream it is in is busy with it, the other one not.
 *
 * `mig = 3g.71gb, 1g.18gb` puts a card into MIG mode, with these instances, named by NVIDIA's profiles; `mig
 * = on` with none. Each instance is one more entry of `cards`, behind all that have a [card] section.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "sim/wire.h"

struct spec_profile {
	char name[20];       /* "3g.71gb" */
	unsigned int slices; /* of seven of compute */
	unsigned int memory_gb;
};

struct spec_card {
	struct sim_card_info info;
	struct spec_profile profile[SIM_MIG_INSTANCES]; /* of its instances to be */
	unsigned int profiles_n;
	uint64_t slice_ns;
	uint64_t gap_ns;    /* lost each time that a slice ends while another process has work */
	uint64_t switch_ns; /* lost when one begins after another's work has ended */
};

struct spec {
	uint32_t cards_n;
	struct spec_card cards[SIM_MAX_CARDS];
};

/* A built-in name, or a path. 0, or -EINVAL/-errno with one line in error (never cut in a word
 * that matters: 256 bytes do). */
int spec_load(struct spec *ret_spec, const char *what, char *error, size_t error_size);
/* The text of a file; `origin` names it in errors. */
int spec_parse(struct spec *ret_spec, const char *text, const char *origin, char *error,
	       size_t error_size);
