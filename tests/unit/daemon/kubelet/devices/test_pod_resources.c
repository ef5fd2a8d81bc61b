/* The kubelet's list of pods, and which claims it keeps. */
#include "../../fixture.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "../../../net/served.h"
#include "../../../scratch.h"
#include "daemon/containers/claims/claims.h"
#include "daemon/kubelet/devices/allocate.h"
#include "daemon/kubelet/devices/pod_resources.h"
#include "daemon/kubelet/plugin/plugin.h"

#define CARD "GPU-00000000-0000-0000-0000-000000000001"
#define RESOURCE "allot.test/gpu"

static const struct slices one = { .card_count = 1, .per_card = 4, .uuid = { CARD } };

/* Containers of two pods hold 0, 2 and 3; one holds another resource, and one none of ours. */
#define ID(number) "\x12\x2a" CARD "-" number
#define DEVICES(size, ids) "\x12" size "\x0a\x0e" RESOURCE ids
static const char pods[] = "\x0a\x76\x0a\x01p\x1a\x71" DEVICES("\x3c", ID("0"))
	DEVICES("\x31", "\x12\x1f"
			"GPU-00000000-0000-0000-0000-0-1") "\x0a\x3e\x1a\x3c"
							   "\x0a\x01m"
							   "\x12\x37\x0a\x09"
							   "other.x/y" ID("1");

static void test_read(void **state)
{
	struct slice_set set = { 0 };
	assert_int_equal(pod_resources_read(&one, RESOURCE, (const uint8_t *)pods, sizeof(pods) - 1,
					    &set),
			 0);
	assert_int_equal(set.card[0].bits[0], 1);
	assert_int_equal(pod_resources_read(&one, "other.x/y", (const uint8_t *)pods,
					    sizeof(pods) - 1, &set),
			 0);
	assert_int_equal(set.card[0].bits[0], 2);
	assert_int_equal(pod_resources_read(&one, RESOURCE, NULL, 0, &set), 0);
	assert_int_equal(set.card[0].bits[0], 0);
	assert_int_equal(pod_resources_read(&one, RESOURCE, (const uint8_t *)"\x0a\x09x", 3, &set),
			 -EPROTO);
	assert_int_equal(set.card[0].bits[0], 0);
}

/* ---- requests to the kubelet ---- */

static atomic_bool is_refusing, is_empty;
static atomic_uint asked;

static void list(void *data, struct grpc_call *call, const uint8_t *message, size_t size)
{
	atomic_fetch_add(&asked, 1);
	if (atomic_load(&is_refusing))
		grpc_call_end(call, GRPC_UNAVAILABLE, "not yet");
	else
		served_reply(call, pods, atomic_load(&is_empty) ? 0 : sizeof(pods) - 1);
}

static const struct grpc_method method = { "/v1.PodResourcesLister/List", list };

#define UNTIL(condition) \
	do { \
		uint64_t end_ns_ = clock_now_ns() + 20 * NSEC_PER_SEC; \
		while (!(condition) && clock_now_ns() < end_ns_) \
			usleep(1000); \
		assert_true(condition); \
	} while (0)

static void test_asked(void **state)
{
	char path[80];
	struct pod_resources *p;
	struct slice_set set = { 0 };
	struct error err;
	snprintf(path, sizeof(path), "%s/pods.sock", scratch);
	atomic_store(&asked, 0);
	atomic_store(&is_refusing, true);
	assert_int_equal(pod_resources_start(path, RESOURCE, &one, &p, &err), 0);
	assert_false(pod_resources_get(p, &set));
	pod_resources_request(p);
	usleep(10000);
	served_start(path, &method);
	pod_resources_request(p);
	UNTIL(atomic_load(&asked) == 1);
	assert_false(pod_resources_get(p, &set));
	atomic_store(&is_refusing, false);
	pod_resources_request(p);
	UNTIL(pod_resources_get(p, &set));
	assert_int_equal(set.card[0].bits[0], 1);
	/* A failure does not undo earlier knowledge. */
	atomic_store(&is_refusing, true);
	pod_resources_request(p);
	UNTIL(atomic_load(&asked) == 3);
	assert_true(pod_resources_get(p, &set));
	assert_null(pod_resources_stop(p));
	served_end();
}

/* ---- the claims of a daemon ---- */

static void make_claim(struct fixture *f, const char *key, unsigned slot)
{
	struct error err = { 0 };
	struct claim *claim;
	struct claim_request request = {
		.key = key,
		.while_wanted = true,
		.device_count = 1,
		.device = { { .card = &f->node->card[0],
			      .terms = { .has_memory = true,
					 .memory_bytes = GIB,
					 .has_cores = true,
					 .cores_pct = 10 } } },
	};
	slots_add(&request.device[0].slots, slot);
	if (claims_allocate(f->node->claims, &request, &claim, &err) < 0)
		fail_msg("%s", err.text);
}

static bool has(struct fixture *f, const char *key)
{
	return claims_find(f->node->claims, key);
}

static void test_what_a_pod_holds_is_kept(void **state)
{
	struct fixture *f = *state;
	struct config *config = &f->node->config;
	struct error err = { 0 };
	char path[80];
	snprintf(path, sizeof(path), "%s/pods.sock", f->dir);
	config->is_kube_plugin = true;
	config->kube_slices = 4;
	config->claim_grace_ns = 1;
	strcpy(config->kube_resource, RESOURCE);
	strcpy(config->kube_plugin_dir, "/nowhere");
	strcpy(config->kube_pod_resources, path);
	assert_int_equal(plugin_start(f->node, &f->node->plugin, &err), -EPERM);
	f->node->is_private = false;
	if (plugin_start(f->node, &f->node->plugin, &err) < 0)
		fail_msg("%s", err.text);
	make_claim(f, ALLOCATE_KEY CARD "-0", 0);
	make_claim(f, ALLOCATE_KEY CARD "-1", 1);
	make_claim(f, "pod/other", 2);
	/* Without a list of pods our claims stay; other claims are never touched. */
	claims_reconcile(f->node->claims);
	usleep(1000);
	claims_reconcile(f->node->claims);
	assert_true(has(f, ALLOCATE_KEY CARD "-0") && has(f, ALLOCATE_KEY CARD "-1"));
	assert_false(has(f, "pod/other"));
	/* The kubelet knows the one. */
	atomic_store(&is_refusing, false);
	atomic_store(&is_empty, false);
	served_start(path, &method);
	struct plugin_figures figures;
	for (unsigned i = 0; i < 20000 && has(f, ALLOCATE_KEY CARD "-1"); i++) {
		fixture_turn(f, 1);
		claims_reconcile(f->node->claims);
	}
	assert_false(has(f, ALLOCATE_KEY CARD "-1"));
	assert_true(has(f, ALLOCATE_KEY CARD "-0"));
	assert_true(plugin_figures(f->node->plugin, &figures));
	assert_int_equal(figures.slices, 8);
	assert_false(figures.is_registered);
	served_end();
	f->node->is_private = true;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_read),
		cmocka_unit_test_setup_teardown(test_asked, make_scratch, remove_scratch),
		cmocka_unit_test_setup_teardown(test_what_a_pod_holds_is_kept, fixture_setup,
						fixture_teardown),
	};
	return cmocka_run_group_tests_name("pod resources", tests, NULL, NULL);
}
