/* Descriptions of simulated cards: what is built in, what a file may say, and what it may not. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "sim/server/spec.h"

static char error[256];

static void built_in(void **state)
{
	static struct spec one, eight;

	assert_int_equal(spec_load(&one, "h200", error, sizeof(error)), 0);
	assert_int_equal(one.cards_n, 1);
	assert_string_equal(one.cards[0].info.name, "NVIDIA H200");
	assert_int_equal(one.cards[0].info.memory_bytes, 143771ull << 20);
	assert_int_equal(one.cards[0].info.context_bytes, 518ull << 20);
	assert_int_equal(one.cards[0].info.sms, 132);
	assert_int_equal(one.cards[0].slice_ns, 2090000);
	assert_int_equal(one.cards[0].switch_ns, 155000);
	assert_int_equal(spec_load(&eight, "h200x8", error, sizeof(error)), 0);
	assert_int_equal(eight.cards_n, 8);
	for (uint32_t i = 0; i < 8; i++) {
		assert_int_equal(strlen(eight.cards[i].info.uuid), 40);
		assert_memory_equal(eight.cards[i].info.uuid, "GPU-", 4);
		assert_int_equal(eight.cards[i].info.peers, 0xffu & ~(1u << i));
		assert_int_equal(eight.cards[i].info.numa, i >= 4);
		for (uint32_t j = 0; j < i; j++) {
			assert_string_not_equal(eight.cards[i].info.uuid, eight.cards[j].info.uuid);
			assert_string_not_equal(eight.cards[i].info.pci, eight.cards[j].info.pci);
		}
	}
	/* The same card each time, and another for another description. */
	assert_int_equal(spec_load(&eight, "h200", error, sizeof(error)), 0);
	assert_string_equal(one.cards[0].info.uuid, eight.cards[0].info.uuid);
}

static void refused_names(void **state)
{
	static struct spec spec;
	static const char *const names[] = { "h200x0", "h200x17", "h200x2y", "nothing-of-that-name",
					     "" };

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		error[0] = '\0';
		assert_true(spec_load(&spec, names[i], error, sizeof(error)) < 0);
		assert_true(error[0]);
	}
}

static void whole_file(void **state)
{
	static struct spec spec;
	int r = spec_parse(&spec,
			   "# two GPUs; the second section has its old name\n"
			   "[gpu]\n"
			   "name = Small GPU\n"
			   "memory = 8 GiB   # comment\n"
			   "context = 100MiB\n"
			   "sms = 16\n"
			   "busy_threads = 512\n"
			   "slice_us = 1000\n"
			   "gap_us = 2.5\n"
			   "switch_us = 7.25\n"
			   "cc = 8.6\n"
			   "nvlink = 1\n"
			   "defects = no-process-utilization, loses-busy-process\n"
			   "\n"
			   "[card]\n"
			   "uuid = GPU-01234567-89ab-cdef-0123-456789abcdef\n"
			   "pci = 0001:5E:00.0\n"
			   "numa = none\n"
			   "nvlink = 0\n"
			   "nvlink_bytes_s = 20 GiB\n"
			   "far_bytes_s = 3 GiB\n"
			   "block = 65536\n",
			   "cards", error, sizeof(error));

	assert_int_equal(r, 0);
	assert_int_equal(spec.cards_n, 2);
	assert_string_equal(spec.cards[0].info.name, "Small GPU");
	assert_int_equal(spec.cards[0].info.memory_bytes, 8ull << 30);
	assert_int_equal(spec.cards[0].info.context_bytes, 100ull << 20);
	assert_int_equal(spec.cards[0].info.sms, 16);
	assert_int_equal(spec.cards[0].info.busy_threads, 512);
	assert_int_equal(spec.cards[1].info.busy_threads, 449);
	assert_int_equal(spec.cards[0].slice_ns, 1000000);
	assert_int_equal(spec.cards[0].gap_ns, 2500);
	assert_int_equal(spec.cards[0].switch_ns, 7250);
	assert_int_equal(spec.cards[1].switch_ns, 155000);
	assert_int_equal(spec.cards[0].info.cc_major, 8);
	assert_int_equal(spec.cards[0].info.cc_minor, 6);
	assert_int_equal(spec.cards[0].info.defects, 3);
	assert_string_equal(spec.cards[1].info.uuid, "GPU-01234567-89ab-cdef-0123-456789abcdef");
	assert_string_equal(spec.cards[1].info.pci, "00000001:5E:00.0");
	assert_int_equal(spec.cards[1].info.numa, -1);
	assert_int_equal(spec.cards[1].info.peers, 1);
	assert_int_equal(spec.cards[1].info.block_bytes, 65536);
	assert_int_equal(spec.cards[0].info.nvlink_bytes_per_s, 25000000000ull);
	assert_int_equal(spec.cards[1].info.nvlink_bytes_per_s, 20ull << 30);
	assert_int_equal(spec.cards[1].info.far_bytes_per_s, 3ull << 30);
}

static void layouts(void **state)
{
	static const char *const names[] = { "dgx-1v", "dgx-a100", "pcie", "mixed" };
	static struct spec spec, again;

	for (size_t n = 0; n < sizeof(names) / sizeof(*names); n++) {
		if (spec_load(&spec, names[n], error, sizeof(error)) < 0)
			fail_msg("%s", error);
		assert_int_equal(spec.cards_n, 8);
		for (uint32_t i = 0; i < 8; i++) {
			const struct sim_card_info *card = &spec.cards[i].info;
			assert_true(card->pcie_depth >= 2 && card->numa >= 0);
			assert_int_equal(card->links[i], 0);
			for (uint32_t j = 0; j < 8; j++) {
				assert_int_equal(card->links[j], spec.cards[j].info.links[i]);
				assert_int_equal(card->links[j] > 0, card->peers >> j & 1);
			}
		}
		assert_int_equal(spec_load(&again, names[n], error, sizeof(error)), 0);
		assert_string_equal(spec.cards[7].info.uuid, again.cards[7].info.uuid);
	}
	/* Cards of two machines are not the same. */
	assert_int_equal(spec_load(&again, "pcie", error, sizeof(error)), 0);
	assert_string_not_equal(spec.cards[0].info.uuid, again.cards[0].info.uuid);
}

/* Links that no number is given for are dealt; of two numbers the smaller is what there is. */
static void links(void **state)
{
	static struct spec spec;

	assert_int_equal(spec_parse(&spec,
				    "[gpu]\nnvlink = 1:4, 2\npcie = 0/1/2\n"
				    "[gpu]\nnvlink = 0:6\npcie = 3\n"
				    "[gpu]\nnvlink = 0\n"
				    "[gpu]\nnvlink = switch:12\n"
				    "[gpu]\nnvlink = switch:6\n",
				    "f", error, sizeof(error)),
			 0);
	assert_int_equal(spec.cards[0].info.links[1], 4);
	assert_int_equal(spec.cards[1].info.links[0], 4);
	assert_int_equal(spec.cards[0].info.links[2], 14);
	assert_int_equal(spec.cards[2].info.links[0], 14);
	assert_int_equal(spec.cards[3].info.peers, 1u << 4);
	assert_int_equal(spec.cards[3].info.links[4], 6);
	assert_int_equal(spec.cards[3].info.links[0], 0);
	assert_int_equal(spec.cards[0].info.pcie_depth, 3);
	assert_int_equal(spec.cards[0].info.pcie[2], 2);
	assert_int_equal(spec.cards[1].info.pcie_depth, 1);
	assert_int_equal(spec.cards[2].info.pcie_depth, 0);
}

/* Behind the cards, in the order of the lists; without links, and with a part of the card each. */
static void instances(void **state)
{
	static struct spec spec;
	const struct sim_card_info *card = &spec.cards[1].info, *small = &spec.cards[3].info;

	assert_int_equal(spec_parse(&spec,
				    "[gpu]\nmig = on\nnvlink = 1\n"
				    "[gpu]\nmig = 3g.71gb,1g.18gb+me, 1g.35gb\nnvlink = 0\n",
				    "f", error, sizeof(error)),
			 0);
	assert_int_equal(spec.cards_n, 5);
	assert_int_equal(spec.cards[0].info.mig, SIM_MIG_ON);
	assert_int_equal(card->mig, SIM_MIG_ON);
	assert_int_equal(card->peers, 1);
	assert_int_equal(small->mig, SIM_MIG_INSTANCE);
	assert_int_equal(small->parent, 1);
	assert_int_equal(small->peers, 0);
	assert_int_equal(small->gpu_instance, spec.cards[2].info.gpu_instance + 1);
	assert_string_equal(small->name, "NVIDIA H200 MIG 1g.18gb+me");
	assert_memory_equal(small->uuid, "MIG-", 4);
	assert_string_equal(small->pci, card->pci);
	assert_true(small->memory_bytes <= card->memory_bytes / 8);
	assert_true(small->memory_bytes > card->memory_bytes / 8 - small->block_bytes);
	assert_int_equal(spec.cards[2].info.memory_bytes / small->memory_bytes, 4);
	assert_int_equal(spec.cards[4].info.memory_bytes / small->memory_bytes, 2);
	assert_int_equal(small->sms, 16);
	assert_string_not_equal(small->uuid, spec.cards[4].info.uuid);
}

static void bad_input(void **state)
{
	static struct spec spec;
	static const struct {
		const char *text, *error;
	} rows[] = {
		{ "", "f: the file has no [gpu] section: it needs one for each GPU" },
		{ "name = x\n",
		  "f:1: 'name = x' is before the first [gpu]: begin the file with a line [gpu]" },
		{ "[disk]\n", "f:1: section '[disk]' is not known: only [gpu] is" },
		{ "[gpu]\nnonsense\n", "f:2: 'nonsense' is not 'key = value'" },
		{ "[gpu]\ncolour = red\n",
		  "f:2: 'colour' is not a key of [gpu]: allot-sim(5) lists the keys" },
		{ "[gpu]\n\nmemory =\n", "f:3: memory: no value" },
		{ "[gpu]\nmemory = lots\n", "f:2: memory: 'lots' is not a number" },
		{ "[gpu]\nmemory = -1\n", "f:2: memory: '-1' is not a number" },
		{ "[gpu]\nmemory = nan\n", "f:2: memory: 'nan' is not a number" },
		{ "[gpu]\nmemory = 8 GB\n",
		  "f:2: memory: '8 GB': the unit must be B, KiB, MiB or GiB" },
		{ "[gpu]\nmemory = 1e30\n", "f:2: memory: '1e30': must be at most 17592186044416" },
		{ "[gpu]\nmemory = 5\n", "f:2: memory: '5': must be at least 16777216" },
		{ "[gpu]\nsms = 0\n", "f:2: sms: '0': must be at least 1" },
		{ "[gpu]\nbusy_threads = 0\n", "f:2: busy_threads: '0': must be at least 1" },
		{ "[gpu]\nbusy_threads = 2049\n", "f:2: busy_threads: '2049': must be at most 2048" },
		{ "[gpu]\nslice_us = 0\n", "f:2: slice_us: '0': must be at least 1" },
		{ "[gpu]\nswitch_us = soon\n", "f:2: switch_us: 'soon' is not a number" },
		{ "[gpu]\nblock = 5000\n", "f:2: block: '5000' is not a power of two" },
		{ "[gpu]\nsms = 4 MiB\n", "f:2: sms: '4 MiB': must be a number without a unit" },
		{ "[gpu]\nuuid = GPU-12\n", NULL },
		{ "[gpu]\npci = here\n", "f:2: pci: 'here' is not like 0000:18:00.0" },
		{ "[gpu]\npci = 0000:18:00\n", "f:2: pci: '0000:18:00' is not like 0000:18:00.0" },
		{ "[gpu]\npci = 0000:18:00.7\n", NULL },
		{ "[gpu]\npci = 0000:18:00.01\n", NULL },
		{ "[gpu]\nnvlink = 99\n", NULL },
		{ "[gpu]\nnvlink = 1:0\n", "f:2: nvlink: '1:0': 1 to 18 links to a GPU" },
		{ "[gpu]\nnvlink = 1:19\n", "f:2: nvlink: '1:19': 1 to 18 links to a GPU" },
		{ "[gpu]\nnvlink = switch:0\n",
		  "f:2: nvlink: 'switch:0': must be switch or switch:N, N from 1 to 18" },
		{ "[gpu]\nnvlink = switches\n",
		  "f:2: nvlink: 'switches': must be switch or switch:N, N from 1 to 18" },
		{ "[gpu]\nnvlink = 1:12, 2:12\n[card]\nnvlink = 0:12\n[card]\nnvlink = 0:12\n",
		  "f: GPU 0: 24 nvlinks: a GPU has 18 at most" },
		{ "[gpu]\npcie = a\n", "f:2: pcie: 'a' is not like 0/1: a host bridge, and at "
				       "most 3 switches below it, each "
				       "0 to 255" },
		{ "[gpu]\npcie = 0/1/2/3/4\n", NULL },
		{ "[gpu]\npcie = 0/256\n", NULL },
		{ "[gpu]\npcie = 0/\n", NULL },
		{ "[gpu]\nnvlink = 0\n",
		  "f: GPU 0: nvlink must name other GPUs of this file, which has 1" },
		{ "[gpu]\nnvlink = 1\n[card]\n",
		  "f: nvlink: GPU 0 lists GPU 1, but GPU 1 does not list GPU 0: both must list each other" },
		{ "[gpu]\ndefects = all\n",
		  "f:2: defects: 'all' is not known: allot-sim(5) lists the defects" },
		{ "[gpu]\nmig = 1g\n", "f:2: mig: '1g' is not a profile like 1g.18gb" },
		{ "[gpu]\nmig = 8g.141gb\n", "f:2: mig: '8g.141gb' is not a profile like 1g.18gb" },
		{ "[gpu]\nmig = 1g.18gbs\n", "f:2: mig: '1g.18gbs' is not a profile like 1g.18gb" },
		{ "[gpu]\nmig = 1g.18xgb\n", "f:2: mig: '1g.18xgb' is not a profile like 1g.18gb" },
		{ "[gpu]\nmig = 1g.0gb\n", "f:2: mig: '1g.0gb' is not a profile like 1g.18gb" },
		{ "[gpu]\nmig = 4g.71gb, 4g.71gb\n",
		  "f: GPU 0: mig: no room for the 4g.71gb: a GPU has 7 slices of compute, 8 of "
		  "memory" },
		{ "[gpu]\nmig = 3g.71gb, 3g.71gb, 1g.18gb\n",
		  "f: GPU 0: mig: no room for the 1g.18gb: a GPU has 7 slices of compute, 8 of "
		  "memory" },
		{ "[gpu]\nmemory = 16 GiB\ncontext = 3 GiB\nmig = 1g.2gb\n",
		  "f: GPU 0: mig: context must not be larger than the memory of instance 1g.2gb" },
		{ "[gpu]\ncc = nine\n", "f:2: cc: 'nine' is not like 9.0" },
		{ "[gpu]\nmemory = 16 MiB\n", "f: GPU 0: context must not be larger than memory" },
		{ "[gpu]\npci = 0:1:0.0\n[card]\npci = 0:1:0.0\n",
		  "f: GPUs 0 and 1 have the same pci address" },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		error[0] = '\0';
		assert_true(spec_parse(&spec, rows[i].text, "f", error, sizeof(error)) < 0);
		if (rows[i].error)
			assert_string_equal(error, rows[i].error);
		assert_true(error[0]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(built_in),   cmocka_unit_test(refused_names),
		cmocka_unit_test(whole_file), cmocka_unit_test(layouts),
		cmocka_unit_test(links),      cmocka_unit_test(bad_input),
		cmocka_unit_test(instances),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
