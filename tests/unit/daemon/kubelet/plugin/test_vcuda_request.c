/* A container's request in gpu-manager's terms, as a claim on cards. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/kubelet/plugin/vcuda_request.h"

#define MIB (UINT64_C(1) << 20)
#define CARDS 3
#define CARD_BYTES (8192 * MIB)

static struct node *node;
static struct place_node *model;
static const char *containers[] = { "fetch", "main" };
static struct kube_pod pod = { .uid = "11-22",
			       .name = "train",
			       .pod_namespace = "team",
			       .container = containers,
			       .containers = 2 };
static char key[TENANT_CLAIM_MAX], name[REGION_NAME_MAX];
static struct claim_request request;
static struct error err;

static int start(void **state)
{
	node = calloc(1, sizeof(*node));
	model = calloc(1, sizeof(*model));
	assert_true(node && model);
	config_default(&node->config);
	node->card_count = model->card_count = CARDS;
	for (unsigned i = 0; i < CARDS; i++) {
		struct gpu_info *info = &node->card[i].info;
		snprintf(info->uuid_text, sizeof(info->uuid_text), "GPU-%u", i);
		info->minor_known = true;
		info->minor = CARDS - i;
		model->card[i] = (struct place_card){ .uuid = info->uuid_text,
						      .type = "NVIDIA X",
						      .memory_total_bytes = CARD_BYTES,
						      .cores_total_mpct = PLACE_CORES_WHOLE_MPCT,
						      .slots_total = UINT32_MAX };
	}
	return 0;
}

static int end(void **state)
{
	free(node);
	free(model);
	return 0;
}

static int make(struct vcuda_request ask)
{
	struct vcuda_choice choice = { .pod = &pod, .container = 1, .request = ask };
	return vcuda_request_make(node, model, &choice, "GPU-1-7", key, name, &request, &err);
}

static void refused(struct vcuda_request ask, int code, const char *why)
{
	assert_int_equal(make(ask), -code);
	if (!strstr(err.text, why))
		fail_msg("'%s' lacks '%s'", err.text, why);
}

static void test_a_part(void **state)
{
	const struct promise_request *terms = &request.device[0].terms;
	assert_int_equal(make((struct vcuda_request){ .cores = 30, .units = 4, .cards = 1 }), 0);
	assert_string_equal(request.key, "pod/11-22/main/GPU-1-7");
	assert_string_equal(request.tenant, "team.train.main");
	assert_true(request.while_wanted && request.device_count == 1);
	assert_true(terms->has_memory && terms->memory_bytes == 1024 * MIB);
	assert_true(terms->has_cores && terms->cores_pct == 30);
	assert_true(terms->has_limit && terms->limit_pct == 30);
	assert_int_equal(
		make((struct vcuda_request){ .cores = 30, .units = 4, .cards = 1, .limit_pct = 80 }),
		0);
	assert_true(terms->limit_pct == 80);
}

/* The one with the least to spare that has room. */
static void test_which_card(void **state)
{
	model->card[1].cores_used_mpct = 60000;
	model->card[1].memory_used_bytes = CARD_BYTES / 2;
	model->card[1].slots_used = 1;
	assert_int_equal(make((struct vcuda_request){ .cores = 40, .units = 16, .cards = 1 }), 0);
	assert_ptr_equal(request.device[0].card, &node->card[1]);
	assert_int_equal(make((struct vcuda_request){ .cores = 40, .units = 17, .cards = 1 }), 0);
	assert_ptr_not_equal(request.device[0].card, &node->card[1]);
	/* A request for a whole card needs a card without other shares. */
	assert_int_equal(make((struct vcuda_request){ .cores = 200, .units = 8, .cards = 2 }), 0);
	assert_int_equal(request.device_count, 2);
	assert_ptr_equal(request.device[0].card, &node->card[0]);
	assert_ptr_equal(request.device[1].card, &node->card[2]);
	assert_int_equal(request.device[1].terms.memory_bytes, 1024 * MIB);
	refused((struct vcuda_request){ .cores = 300, .cards = 3 }, ENOSPC,
		"3 GPUs with enough room are needed: ");
	refused((struct vcuda_request){ .cores = 10, .units = 33, .cards = 1 }, ENOSPC,
		"3/3 CardInsufficientMemory");
}

static void test_all_of_a_card(void **state)
{
	assert_int_equal(make((struct vcuda_request){ .cores = 100, .cards = 1 }), 0);
	assert_int_equal(request.device[0].terms.memory_bytes, CARD_BYTES);
	assert_true(request.device[0].terms.cores_pct == 100);
}

/* The claim of a container that requested part of the memory does not match one that requested all. */
static void test_is_met(void **state)
{
	static const struct {
		uint64_t quota_bytes;
		unsigned units;
		bool is_met;
	} rows[] = {
		{ 1024 * MIB, 4, true },  { 1024 * MIB, 3, false },      { CARD_BYTES, 0, true },
		{ 1024 * MIB, 0, false }, { CARD_BYTES - MIB, 0, true },
	};
	struct tenant *tenant = calloc(1, sizeof(*tenant));
	struct claim claim = { .tenant = tenant };
	assert_non_null(tenant);
	tenant->terms.device_count = 1;
	tenant->terms.device[0].card = &node->card[0];
	node->card[0].info.memory_bytes = CARD_BYTES;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const struct vcuda_request ask = { .cores = 100, .units = rows[i].units, .cards = 1 };
		tenant->terms.device[0].promise =
			(struct promise){ .memory_given = true,
					  .quota_bytes = rows[i].quota_bytes,
					  .cores_pct = 100,
					  .limit_given = true,
					  .limit_pct = 100 };
		if (vcuda_request_matches(&claim, &ask) != rows[i].is_met)
			fail_msg("row %zu", i);
	}
	free(tenant);
}

static void test_a_scheduler(void **state)
{
	struct vcuda_request ask = {
		.cores = 60, .units = 8, .cards = 2, .chosen = 2, .minor = { 1, 3 }
	};
	assert_int_equal(make(ask), 0);
	/* By the numbers of device files, not by places. */
	assert_ptr_equal(request.device[0].card, &node->card[2]);
	assert_ptr_equal(request.device[1].card, &node->card[0]);
	assert_true(request.device[0].terms.cores_pct == 30);
	assert_int_equal(request.device[1].terms.memory_bytes, 1024 * MIB);
	model->card[0].cores_used_mpct = 80000;
	refused(ask, ENOSPC,
		"GPU 3: the scheduler chose this GPU, but the request does not fit on it: CardInsufficientCore");
	ask.minor[0] = 0;
	refused(ask, ENODEV, "GPU 0: is not a GPU of this node");
}

static void test_a_scheduler_of_the_other_protocol(void **state)
{
	struct vcuda_request ask = { .cores = 60,
				     .units = 8,
				     .cards = 2,
				     .chosen = 2,
				     .is_by_shares = true,
				     .uuid = { "GPU-2", "GPU-1" } };
	assert_int_equal(make(ask), 0);
	assert_ptr_equal(request.device[0].card, &node->card[2]);
	assert_ptr_equal(request.device[1].card, &node->card[1]);
	model->card[1].is_cordoned = true;
	refused(ask, ENOSPC,
		"to-allocate: GPU-1: the scheduler chose this GPU, but the request does not fit on it: CardCordoned");
	strcpy(ask.uuid[0], "GPU-x");
	refused(ask, ENODEV, "to-allocate: GPU-x: is not a GPU of this node");
}

static void test_whole_cards_alone(void **state)
{
	node->config.is_kube_share = false;
	refused((struct vcuda_request){ .cores = 30, .units = 4, .cards = 1 }, EINVAL,
		"the container asks for 30 hundredths of a GPU on 1 GPU: must be 100 for each GPU while kube_share is off");
	refused((struct vcuda_request){ .cores = 100, .units = 4, .cards = 2 }, EINVAL, "on 2 GPUs");
	assert_int_equal(make((struct vcuda_request){ .cores = 200, .units = 4, .cards = 2 }), 0);
}

int main(void)
{
#define WITH_NODE(test) cmocka_unit_test_setup_teardown(test, start, end)
	const struct CMUnitTest tests[] = {
		WITH_NODE(test_a_part),
		WITH_NODE(test_which_card),
		WITH_NODE(test_all_of_a_card),
		WITH_NODE(test_is_met),
		WITH_NODE(test_a_scheduler),
		WITH_NODE(test_a_scheduler_of_the_other_protocol),
		WITH_NODE(test_whole_cards_alone),
	};
	return cmocka_run_group_tests_name("vcuda request", tests, NULL, NULL);
}
