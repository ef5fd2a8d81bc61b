/* An allocated ResourceClaim as a claim of the store: sums, bounds, refusals. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <errno.h>
#include <stdio.h>

#include "daemon/kubelet/dra/dra_request.h"
#include "kube/dra/slice.h"
#include "daemon/state/node/node.h"

#define GIB (UINT64_C(1) << 30)

static struct node *node;
static struct claim_request request;
static struct error err;

static int start(void **state)
{
	node = calloc(1, sizeof(*node));
	assert_non_null(node);
	config_default(&node->config);
	node->card_count = REGION_MAX_DEVICES + 1;
	for (unsigned i = 0; i < node->card_count; i++) {
		struct gpu_info *info = &node->card[i].info;
		snprintf(info->uuid_text, sizeof(info->uuid_text),
			 "GPU-00000000-0000-0000-0000-%012u", i);
		gpu_uuid_parse(info->uuid_text, info->uuid);
		info->memory_bytes = 80 * GIB;
	}
	return 0;
}

static int end(void **state)
{
	free(node);
	return 0;
}

static int make(struct dra_result *results, size_t count)
{
	const struct dra_claim claim = { .uid = "u", .count = count, .result = results };
	return dra_request_make(node, "n1", &claim, "dra/u/team/c", "team.c", "team", &request,
				&err);
}

#define FIRST "gpu-00000000-0000-0000-0000-000000000000"
#define SECOND "gpu-00000000-0000-0000-0000-000000000001"

/* 30 % and 20 GiB of the first card. */
static struct dra_result share(const char *name)
{
	return (struct dra_result){ .request = name,
				    .pool = "n1/" FIRST,
				    .device = FIRST,
				    .memory_bytes = 20 * GIB,
				    .cores_pct = 30 };
}

static void test_share(void **state)
{
	struct dra_result one = share("a");
	assert_int_equal(make(&one, 1), 0);
	assert_string_equal(request.key, "dra/u/team/c");
	assert_string_equal(request.tenant, "team.c");
	assert_string_equal(request.namespace_name, "team");
	assert_true(request.while_wanted);
	assert_int_equal(request.on_full, ON_FULL_FAIL);
	assert_int_equal(request.device_count, 1);
	assert_ptr_equal(request.device[0].card, &node->card[0]);
	assert_int_equal(request.device[0].terms.memory_bytes, 20 * GIB);
	assert_true(request.device[0].terms.has_cores && request.device[0].terms.cores_pct == 30);
	assert_true(request.device[0].terms.limit_pct == 100);
	one.cores_pct = 0;
	assert_int_equal(make(&one, 1), 0);
	assert_false(request.device[0].terms.has_cores);
}

/* The whole card where the cluster counts no shares. */
static void test_whole(void **state)
{
	struct dra_result one = share("a");
	one.is_whole = true;
	one.memory_bytes = 0;
	assert_int_equal(make(&one, 1), 0);
	assert_int_equal(request.device[0].terms.memory_bytes, 80 * GIB);
}

static void test_one_card_twice(void **state)
{
	struct dra_result two[3] = { share("a"), share("b"), share("c") };
	two[1].device = SECOND;
	two[1].pool = "n1/" SECOND;
	assert_int_equal(make(two, 3), 0);
	assert_int_equal(request.device_count, 2);
	assert_int_equal(request.device[0].terms.memory_bytes, 40 * GIB);
	assert_true(request.device[0].terms.cores_pct == 60);
	assert_int_equal(request.device[1].terms.memory_bytes, 20 * GIB);
	for (size_t i = 0; i < 3; i++)
		two[i].terms = (struct dra_terms){ .has_cores_limit = true, .cores_limit_pct = 40 };
	assert_int_equal(make(two, 3), -EINVAL);
	assert_non_null(strstr(err.text, "coresLimit 40 is less than the 60 % of cores"));
	two[0].terms.cores_limit_pct = 60;
	assert_int_equal(make(two, 3), 0);
	assert_true(request.device[0].terms.limit_pct == 60);
	assert_true(request.device[1].terms.limit_pct == 40);
}

static void test_terms(void **state)
{
	struct dra_result one = share("a");
	one.terms = (struct dra_terms){ .has_cores_limit = true,
					.cores_limit_pct = 45,
					.has_priority = true,
					.priority = -3,
					.on_full = "wait",
					.sharing = "space",
					.group = "g" };
	assert_int_equal(make(&one, 1), 0);
	assert_true(request.device[0].terms.limit_pct == 45);
	assert_int_equal(request.priority, -3);
	assert_int_equal(request.on_full, ON_FULL_WAIT);
	assert_true(request.sharing.has_way && request.sharing.way == SHARING_SPACE);
	assert_string_equal(request.sharing.group, "g");
}

/* With kube_slice_limit = hard the share is the limit, unless the claim has another. */
static void test_hard_limit(void **state)
{
	struct dra_result one = share("a");
	node->config.is_kube_slice_hard = true;
	assert_int_equal(make(&one, 1), 0);
	assert_true(request.device[0].terms.limit_pct == 30);
	one.terms.has_cores_limit = true;
	one.terms.cores_limit_pct = 70;
	assert_int_equal(make(&one, 1), 0);
	assert_true(request.device[0].terms.limit_pct == 70);
	node->config.is_kube_slice_hard = false;
}

static void refused(struct dra_result *results, size_t count, int why, const char *text)
{
	assert_int_equal(make(results, count), -why);
	if (!strstr(err.text, text))
		fail_msg("%s: %s", text, err.text);
}

static void test_refused(void **state)
{
	static char names[REGION_MAX_DEVICES + 1][64], pools[REGION_MAX_DEVICES + 1][DRA_POOL_MAX];
	struct dra_result many[REGION_MAX_DEVICES + 1], two[2] = { share("a"), share("b") };
	refused(NULL, 0, EINVAL, "no device of gpu.allot.dev is allocated to the claim");
	many[0] = share("a");
	many[0].device = "gpu-b";
	many[0].pool = "n1/gpu-b";
	refused(many, 1, ENODEV, "request a: GPU gpu-b is not on this node any more");
	many[0] = share("a");
	many[0].pool = "n2/" FIRST;
	refused(many, 1, ENODEV,
		"belongs to the pool 'n2/" FIRST "', which is not a pool of node n1");
	two[1].terms.has_priority = true;
	refused(two, 2, EINVAL, "request b: priority is not the same for the requests a and b");
	two[1] = share("b");
	strcpy(two[1].terms.on_full, "wait");
	refused(two, 2, EINVAL, "onFull is not the same");
	two[1] = share("b");
	two[1].device = SECOND;
	two[1].pool = "n1/" SECOND;
	node->card[1].info.is_instance = true;
	refused(two, 2, EINVAL,
		"is a MIG instance: CUDA shows no other device to a process that uses a MIG instance");
	node->card[1].info.is_instance = false;
	two[0].terms.has_cores_limit = true;
	two[0].terms.cores_limit_pct = 29;
	refused(two, 1, EINVAL, "coresLimit 29 is less than the 30 % of cores that are requested");
	for (size_t i = 0; i < REGION_MAX_DEVICES + 1; i++) {
		many[i] = share("a");
		snprintf(names[i], sizeof(names[i]), "gpu-00000000-0000-0000-0000-%012zu", i);
		many[i].device = names[i];
		dra_pool_name("n1", names[i], pools[i]);
		many[i].pool = pools[i];
	}
	refused(many, REGION_MAX_DEVICES + 1, EINVAL, "a claim may have at most 16");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_share),          cmocka_unit_test(test_whole),
		cmocka_unit_test(test_one_card_twice), cmocka_unit_test(test_terms),
		cmocka_unit_test(test_hard_limit),     cmocka_unit_test(test_refused),
	};
	return cmocka_run_group_tests(tests, start, end);
}
