/* A scheduler's choice as a claim: sums, bounds, refusals. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/kubelet/plugin/allocate_annotated.h"
#include "daemon/kubelet/plugin/annotated_request.h"

#define MIB (UINT64_C(1) << 20)

static struct node *node;
static const char *containers[] = { "fetch", "main" };
static struct kube_pod pod = { .uid = "11-22",
			       .name = "train",
			       .pod_namespace = "team",
			       .container = containers,
			       .containers = 2 };
static char key[TENANT_CLAIM_MAX], name[REGION_NAME_MAX];
static struct claim_request request;
#define UUID "GPU-00000000-0000-0000-0000-"
#define GPU(digit) UUID "00000000000" #digit

static struct error err;

static int start(void **state)
{
	node = calloc(1, sizeof(*node));
	assert_non_null(node);
	config_default(&node->config);
	node->card_count = REGION_MAX_DEVICES + 1;
	for (unsigned i = 0; i < node->card_count; i++) {
		struct gpu_info *info = &node->card[i].info;
		snprintf(info->uuid_text, sizeof(info->uuid_text), UUID "%012u", i);
		gpu_uuid_parse(info->uuid_text, info->uuid);
	}
	return 0;
}

static int end(void **state)
{
	free(node);
	return 0;
}

static int make(const struct kube_share *shares, size_t count)
{
	struct choice choice = { .pod = &pod, .container = 1, .share = shares, .share_count = count };

	return annotated_request_make(node, &choice, key, name, &request, &err);
}

static void test_names(void **state)
{
	const struct kube_share share = { .card = GPU(1), .memory_mib = 3000, .cores_pct = 30 };

	assert_int_equal(make(&share, 1), 0);
	assert_string_equal(request.key, POD_KEY "11-22/main");
	assert_string_equal(request.tenant, "team.train.main");
	assert_true(request.while_wanted);
	assert_int_equal(request.on_full, ON_FULL_FAIL);
	assert_int_equal(request.device_count, 1);
	assert_ptr_equal(request.device[0].card, &node->card[1]);
	assert_true(request.device[0].terms.has_memory);
	assert_int_equal(request.device[0].terms.memory_bytes, 3000 * MIB);
}

static void test_limits(void **state)
{
	struct kube_share share = { .card = GPU(0), .memory_mib = 1, .cores_pct = 30 };
	const struct promise_request *terms = &request.device[0].terms;

	assert_int_equal(make(&share, 1), 0);
	assert_true(terms->has_cores && terms->cores_pct == 30 && terms->limit_pct == 100);
	node->config.is_kube_slice_hard = true;
	assert_int_equal(make(&share, 1), 0);
	assert_true(terms->has_limit && terms->limit_pct == 30);
	/* Without any it is no cap, however hard. */
	share.cores_pct = 0;
	assert_int_equal(make(&share, 1), 0);
	assert_true(!terms->has_cores && terms->limit_pct == 100);
}

/* Opportunistic: no guarantee, no more than requested, and behind all others, whatever its priority. */
static void test_borrowed(void **state)
{
	struct kube_share share = { .container = 1, .card = GPU(0), .memory_mib = 1000 };
	const struct promise_request *terms = &request.device[0].terms;

	pod.object = json_pack("{s:{s:{s:s}}}", "metadata", "annotations", "allot.dev/borrowed",
			       ";" GPU(0) ",NVIDIA,1000,20:;");
	assert_int_equal(make(&share, 1), 0);
	assert_true(!terms->has_cores && terms->has_limit && terms->limit_pct == 20);
	assert_int_equal(request.priority, -100);
	/* Other shares are unaffected. */
	share.memory_mib = 2000;
	assert_int_equal(make(&share, 1), 0);
	assert_true(!terms->has_cores && terms->limit_pct == 100);
	assert_int_equal(request.priority, 0);
	json_decref(pod.object);
	pod.object = json_pack("{s:{s:{s:s}}}", "metadata", "annotations", "allot.dev/borrowed",
			       "20");
	assert_int_equal(make(&share, 1), -EINVAL);
	assert_string_equal(err.text, "allot.dev/borrowed: container 0: share 0: 1 fields: must be "
				      "UUID,KIND,MEMORY,CORES");
	json_decref(pod.object);
	pod.object = NULL;
}

static void test_sharing(void **state)
{
	struct kube_share share = { .container = 1, .card = GPU(0), .memory_mib = 1000 };

	assert_int_equal(make(&share, 1), 0);
	assert_false(request.sharing.has_way);
	assert_string_equal(request.namespace_name, "team");
	pod.object = json_pack("{s:{s:{s:s, s:s, s:s}}}", "metadata", "annotations",
			       "allot.dev/sharing", "space", "main.allot.dev/group", "pair",
			       "fetch.allot.dev/sharing", "time");
	assert_int_equal(make(&share, 1), 0);
	assert_true(request.sharing.has_way);
	assert_int_equal(request.sharing.way, SHARING_SPACE);
	assert_string_equal(request.sharing.group, "pair");
	json_decref(pod.object);
	pod.object = json_pack("{s:{s:{s:s}}}", "metadata", "annotations", "allot.dev/sharing",
			       "both");
	assert_int_equal(make(&share, 1), -EINVAL);
	assert_string_equal(err.text, "allot.dev/sharing: 'both': must be time or space");
	json_decref(pod.object);
	pod.object = NULL;
}

static void test_shares_of_a_card_add_up(void **state)
{
	const struct kube_share shares[] = {
		{ .card = GPU(2), .memory_mib = 1000, .cores_pct = 60 },
		{ .card = GPU(0), .memory_mib = 500, .cores_pct = 5 },
		{ .card = GPU(2), .memory_mib = 24, .cores_pct = 70 },
	};

	assert_int_equal(make(shares, 3), 0);
	assert_int_equal(request.device_count, 2);
	assert_ptr_equal(request.device[0].card, &node->card[2]);
	assert_int_equal(request.device[0].terms.memory_bytes, 1024 * MIB);
	assert_true(request.device[0].terms.cores_pct == 100);
	assert_ptr_equal(request.device[1].card, &node->card[0]);
}

static void test_more_memory_than_there_is(void **state)
{
	const struct kube_share share = { .card = GPU(0), .memory_mib = 1000 };

	node->config.kube_memory_scaling = 1.5;
	assert_int_equal(make(&share, 1), 0);
	assert_int_equal(request.on_full, ON_FULL_SWAP);
}

static void test_priority(void **state)
{
	const struct kube_share share = { .card = GPU(0), .memory_mib = 1000 };

	assert_int_equal(make(&share, 1), 0);
	assert_int_equal(request.priority, 0);
	pod.object = json_loads("{\"spec\":{\"containers\":[{\"resources\":{\"limits\":"
				"{\"nvidia.com/priority\":\"1\",\"a.b/rank\":\"0\","
				"\"a.b/bad\":\"-1\"}}}]}}",
				0, NULL);
	assert_non_null(pod.object);
	pod.init_containers = 1;
	assert_int_equal(make(&share, 1), 0);
	assert_int_equal(request.priority, 0);
	strcpy(node->config.kube_priority_resource, "a.b/rank");
	assert_int_equal(make(&share, 1), 0);
	assert_true(request.priority > 0);
	strcpy(node->config.kube_priority_resource, "a.b/bad");
	assert_true(make(&share, 1) < 0);
	json_decref(pod.object);
	pod.object = NULL;
	pod.init_containers = 0;
}

static void refused(const struct kube_share *shares, size_t count, int code, const char *text)
{
	assert_int_equal(make(shares, count), -code);
	if (!strstr(err.text, text))
		fail_msg("'%s' says nothing of '%s'", err.text, text);
}

static void test_refused(void **state)
{
	static const struct kube_share other = { .card = "GPU-x", .memory_mib = 1 };
	static const struct kube_share nothing = { .card = GPU(0), .memory_mib = 0 };
	static const struct kube_share much = { .card = GPU(0), .memory_mib = UINT64_MAX };
	struct kube_share many[REGION_MAX_DEVICES + 1];
	char uid[TENANT_CLAIM_MAX];

	refused(&other, 1, ENODEV, "GPU-x is not a GPU of this node");
	refused(&nothing, 1, EINVAL, "memory of 0 MiB: must be 1 to");
	refused(&much, 1, EINVAL, " MiB: must be 1 to");
	for (unsigned i = 0; i <= REGION_MAX_DEVICES; i++) {
		many[i] = (struct kube_share){ .memory_mib = 1 };
		snprintf(many[i].card, sizeof(many[i].card), UUID "%012u", i);
	}
	assert_int_equal(make(many, REGION_MAX_DEVICES), 0);
	refused(many, REGION_MAX_DEVICES + 1, EINVAL,
		"the scheduler gave shares of too many GPUs: a container may have at most 16");
	memset(uid, 'u', sizeof(uid) - 1);
	uid[sizeof(uid) - 1] = '\0';
	pod.uid = uid;
	refused(many, 1, EINVAL, "too long");
	pod.uid = "11-22";
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_names, start, end),
		cmocka_unit_test_setup_teardown(test_limits, start, end),
		cmocka_unit_test_setup_teardown(test_sharing, start, end),
		cmocka_unit_test_setup_teardown(test_borrowed, start, end),
		cmocka_unit_test_setup_teardown(test_shares_of_a_card_add_up, start, end),
		cmocka_unit_test_setup_teardown(test_more_memory_than_there_is, start, end),
		cmocka_unit_test_setup_teardown(test_priority, start, end),
		cmocka_unit_test_setup_teardown(test_refused, start, end),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
