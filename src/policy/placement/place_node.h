/*
 * A node as the allocator sees it: its GPUs, how much of each is taken, and how near the GPUs are to each other. Plain data,
 * filled in by the caller.
 *
 * Shares of compute are counted in thousandths of a percent of a GPU's time ("mpct"), so that sums are exact. All functions of
 * src/policy/placement are thread safe, because they use their arguments only.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define PLACE_MAX_CARDS 64
#define MIB_BITS 20
#define MPCT 1000 /* thousandths of a percent in a percent */
#define PLACE_CORES_WHOLE_MPCT 100000u

/* The path between two GPUs without NVLink; a greater value is nearer. Names and order are `nvidia-smi topo -m`'s. */
enum place_level {
	PLACE_LEVEL_UNKNOWN,
	PLACE_LEVEL_SYS,  /* across CPU sockets */
	PLACE_LEVEL_NODE, /* across host bridges of one NUMA node */
	PLACE_LEVEL_PHB,  /* through one host bridge */
	PLACE_LEVEL_PXB,  /* through several PCIe switches */
	PLACE_LEVEL_PIX,  /* through one PCIe switch */
	PLACE_LEVEL_PSB,  /* on one board */
	PLACE_LEVEL_COUNT,
};

struct place_link {
	uint8_t nvlinks; /* active NVLinks between the two GPUs, direct or through an NVSwitch */
	enum place_level level; /* the path without NVLink */
};

struct place_card {
	const char *uuid; /* owned by the caller; must be valid as long as the node */
	const char *type; /* model, such as "NVIDIA H200" */
	uint64_t memory_total_bytes;
	uint64_t memory_reserved_bytes; /* by configuration, so never assigned */
	uint64_t memory_used_bytes;
	/* PLACE_CORES_WHOLE_MPCT; more if the GPU's time is overcommitted */
	uint32_t cores_total_mpct;
	uint32_t cores_reserved_mpct;
	uint32_t cores_used_mpct;
	uint32_t slots_total; /* containers that may share the GPU; UINT32_MAX: no limit */
	uint32_t slots_used;
	bool numa_known;
	unsigned numa;
	/* A MIG instance. It serves only requests for one GPU, because CUDA shows a process no other GPU beside it. */
	bool is_instance;
	bool is_sick;
	bool is_cordoned;
};

struct place_histogram;

struct place_node {
	/* kinds of requests that are expected on this node or similar nodes; NULL: unknown */
	const struct place_histogram *histogram;
	unsigned card_count;
	struct place_card card[PLACE_MAX_CARDS];
	struct place_link link[PLACE_MAX_CARDS][PLACE_MAX_CARDS]; /* symmetric */
};

void place_node_link(struct place_node *node, unsigned a, unsigned b, struct place_link link);

/* Neither reserved nor used; 0 if more is used than the GPU has. */
static inline uint64_t place_memory_left(const struct place_card *card)
{
	uint64_t taken = card->memory_reserved_bytes + card->memory_used_bytes;
	return taken < card->memory_total_bytes ? card->memory_total_bytes - taken : 0;
}

static inline uint32_t place_cores_left(const struct place_card *card)
{
	uint64_t taken = (uint64_t)card->cores_reserved_mpct + card->cores_used_mpct;
	return taken < card->cores_total_mpct ? card->cores_total_mpct - (uint32_t)taken : 0;
}

/* True if no part of the GPU is in use, and the GPU is neither sick nor cordoned. */
bool place_is_free(const struct place_card *card);

/* Such as "SYS"; "?" for an unknown level. */
const char *place_level_name(enum place_level level);

/* HAMi's score, higher for nearer GPUs: 10 (across sockets) to 60 by level, plus 100 per NVLink; 0: unknown. */
unsigned place_link_score(struct place_link link);
