/*
 * A node as the allocator sees it: its cards, what is taken of each, and how near each is to each
 * other. Plain data, filled by whoever knows; nothing here looks anything up.
 *
 * Shares of compute are thousandths of a percent of a card's time ("mpct"): sums are exact.
 * Thread safety: none is needed, every function of src/policy/placement reads its arguments alone.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define PLACE_MAX_CARDS 64
#define PLACE_CORES_WHOLE_MPCT 100000u

/*
 * The way between two cards without NVLink, farthest first, so that nearer is greater. Words and
 * order are those of `nvidia-smi topo -m`.
 */
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
	uint8_t nvlinks;        /* active NVLinks between the two, directly or by an NVSwitch */
	enum place_level level; /* beside them */
};

struct place_card {
	const char *uuid; /* the caller's; lives as long as the node */
	const char *type; /* the model, such as "NVIDIA H200" */
	uint64_t memory_total_bytes;
	uint64_t memory_reserved_bytes; /* by configuration: nobody gets it */
	uint64_t memory_used_bytes;
	uint32_t cores_total_mpct; /* PLACE_CORES_WHOLE_MPCT, or more where time is given out twice */
	uint32_t cores_reserved_mpct;
	uint32_t cores_used_mpct;
	uint32_t slots_total; /* how many may share it; UINT32_MAX: no limit */
	uint32_t slots_used;
	bool numa_known;
	unsigned numa;
	bool is_instance; /* of MIG: serves a request for one card alone, as CUDA shows no other beside it */
	bool is_sick;
	bool is_cordoned;
};

struct place_histogram; /* room.h */

struct place_node {
	const struct place_histogram *
		histogram; /* what else is asked for, of this node or others like it; NULL: not known */
	unsigned card_count; /* at most PLACE_MAX_CARDS */
	struct place_card card[PLACE_MAX_CARDS];
	struct place_link link[PLACE_MAX_CARDS][PLACE_MAX_CARDS]; /* both ways the same */
};

/* Sets the link of two cards, both ways. */
void place_node_link(struct place_node *node, unsigned a, unsigned b, struct place_link link);

/* What is left of a card; 0 where more is used than there is. */
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

/* Nobody has a part of it, and it may be given out. */
bool place_is_free(const struct place_card *card);

const char *place_level_name(enum place_level level); /* "SYS"; "?" for what is unknown */

/*
 * HAMi's score of a pair, higher for nearer: 10 across CPUs, 20, 30, 40, 50 and 60 for each level
 * nearer, and 100 for each NVLink on top. 0: nothing is known.
 */
unsigned place_link_score(struct place_link link);
