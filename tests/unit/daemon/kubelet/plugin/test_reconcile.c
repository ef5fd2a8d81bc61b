/* The kubelet's books, pods' annotations and claims: where they differ, both sides are named. */
#include "../../fixture.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "../../../net/served.h"
#include "daemon/kubelet/devices/allocate.h"
#include "daemon/kubelet/devices/claim_holders.h"
#include "daemon/kubelet/plugin/reconcile.h"
#include "daemon/kubelet/plugin/allocate_annotated.h"
#include "daemon/kubelet/plugin/plugin.h"
#include "daemon/kubelet/plugin/plugin_inside.h"
#include "daemon/kubelet/proto/pod_resources.pb-c.h"

#define CARD "GPU-00000000-0000-0000-0000-000000000001"
#define OTHER "GPU-00000000-0000-0000-0000-000000000002"
#define RESOURCE "allot.test/gpu"

static const struct slices two = { .card_count = 2, .per_card = 4, .uuid = { CARD, OTHER } };

static struct claim *make_claim(struct fixture *f, const char *key, unsigned card, int slot,
				int last)
{
	struct error err = { 0 };
	struct claim *claim = NULL;
	struct claim_request request = {
		.key = key,
		.while_wanted = true,
		.device_count = 1,
		.device = { { .card = &f->node->card[card],
			      .terms = { .has_memory = true,
					 .memory_bytes = GIB,
					 .has_cores = true,
					 .cores_pct = 10 } } },
	};
	for (; slot >= 0 && slot <= last; slot++)
		slots_add(&request.device[0].slots, (unsigned)slot);
	if (claims_allocate(f->node->claims, &request, &claim, &err) < 0)
		fail_msg("%s", err.text);
	return claim;
}

static struct pod_holder holder_of(const char *const *id, size_t count)
{
	return (struct pod_holder){ "team", "train", "main", id, count };
}

/* The reported difference; "": they agree. */
static const char *slices_say(struct fixture *f, const char *first, const char *second)
{
	static struct error err;
	const char *const id[] = { first, second };
	struct pod_holder holder = holder_of(id, second ? 2 : 1);
	struct claim *claim = NULL;
	err = (struct error){ 0 };
	int r = reconcile_slices(&two, f->node->claims, &holder, &claim, &err);
	assert_true((r == 0) == (claim != NULL));
	assert_true(r == 0 || r == -EEXIST);
	return err.text;
}

static void test_slices(void **state)
{
	struct fixture *f = *state;
	assert_string_equal(
		slices_say(f, CARD "-0", NULL),
		"kubelet: pod team/train, container main has 1 device(s), starting with '" CARD
		"-0': allotd: no claim has these devices");
	make_claim(f, ALLOCATE_KEY CARD "-0", 0, 0, 1);
	/* As many, of which one is another. */
	assert_non_null(strstr(slices_say(f, CARD "-0", CARD "-2"),
			       "allotd: claim '" ALLOCATE_KEY CARD "-0' (tenant 'slices-"));
	assert_non_null(strstr(slices_say(f, CARD "-0", NULL),
			       "has only some of the container's devices, or has other devices too"));
	assert_non_null(strstr(slices_say(f, OTHER "-0", OTHER "-1"), "no claim has these devices"));
	assert_non_null(strstr(slices_say(f, CARD "-9", NULL), CARD "-9"));
	assert_string_equal(slices_say(f, CARD "-1", CARD "-0"), "");
}

static struct kube_pod *pod_with(const char *allocated)
{
	struct kube_pod *pod = NULL;
	struct error err;
	json_t *object = json_pack("{s:{s:s,s:s,s:s,s:s,s:{s:s*}},s:{s:[{s:s},{s:s}]}}", "metadata",
				   "name", "train", "namespace", "team", "uid", "u-1",
				   "resourceVersion", "1", "annotations",
				   "hami.io/vgpu-devices-allocated", allocated, "spec",
				   "containers", "name", "log", "name", "main");
	assert_non_null(object);
	if (pod_read(object, &pod, &err) < 0)
		fail_msg("%s", err.text);
	json_decref(object);
	return pod;
}

static const char *shares_say(struct fixture *f, const char *allocated, size_t count)
{
	static struct error err;
	const char *const id[] = { OTHER "-3", OTHER "-2" };
	struct pod_holder holder = holder_of(id, count);
	struct kube_pod *pod = pod_with(allocated);
	struct claim *claim;
	err = (struct error){ 0 };
	int r = reconcile_shares(pod, f->node->claims, &holder, &claim, &err);
	assert_true(r == (*err.text ? -EEXIST : 0));
	pod_free(pod);
	return err.text;
}

static void test_shares(void **state)
{
	struct fixture *f = *state;
	static const char said[] = ";" CARD ",NVIDIA,1024,10:;";
	assert_non_null(strstr(shares_say(f, said, 1), "allotd: this container has no claim"));
	make_claim(f, POD_KEY "u-1/main", 0, -1, -1);
	/* It does not matter on which cards the kubelet's devices lie. */
	assert_string_equal(shares_say(f, said, 1), "");
	assert_non_null(strstr(shares_say(f, said, 2), "has 2 device(s)"));
	assert_non_null(strstr(shares_say(f, said, 2), "hami.io/vgpu-devices-allocated: 1 shares"));
	assert_non_null(strstr(shares_say(f, ";" OTHER ",NVIDIA,1024,10:;", 1),
			       "a share of " OTHER
			       "; allotd: claim 'pod/u-1/main' has no share of that GPU"));
	assert_non_null(strstr(shares_say(f, NULL, 1), "hami.io/vgpu-devices-allocated: missing"));
	assert_non_null(strstr(shares_say(f, "nonsense", 1), "hami.io/vgpu-devices-allocated: "));
}

/* ---- gpu-manager's vocabulary ---- */

static const struct vcuda_names names = { "x/core", "x/memory" };

/* Containers "init" and "main", which ask for as much each. */
static struct kube_pod *pod_asking(const char *uid, const char *cores, const char *memory)
{
	struct kube_pod *pod = NULL;
	struct error err;
	json_t *object = json_pack("{s:{s:s,s:s,s:s,s:s},s:{s:[{s:s,s:{s:{s:s,s:s}}}],"
				   "s:[{s:s,s:{s:{s:s,s:s}}}]}}",
				   "metadata", "name", "train", "namespace", "team", "uid", uid,
				   "resourceVersion", "1", "spec", "initContainers", "name", "init",
				   "resources", "limits", "x/core", cores, "x/memory", memory,
				   "containers", "name", "main", "resources", "limits", "x/core",
				   cores, "x/memory", memory);
	assert_non_null(object);
	if (pod_read(object, &pod, &err) < 0)
		fail_msg("%s", err.text);
	json_decref(object);
	return pod;
}

/* The report on the devices of a pod with this uid and these requests; returns the claim concerned. */
static const char *cores_say(struct fixture *f, const char *uid, const char *cores,
			     const char *memory, const char *first, struct claim **ret_claim)
{
	static struct error err;
	const char *const id[] = { OTHER "-3", first };
	struct pod_holder holder = holder_of(id, 2);
	struct kube_pod *pod = pod_asking(uid, cores, memory);
	size_t container = 9;
	err = (struct error){ 0 };
	int r = reconcile_cores(&two, &names, pod, f->node->claims, &holder, ret_claim, &container,
				&err);
	assert_true(r == (*err.text ? -EEXIST : 0));
	assert_int_equal(container, 1);
	pod_free(pod);
	return err.text;
}

static struct claim *make_cores(struct fixture *f, const char *key)
{
	struct error err = { 0 };
	struct claim *claim = NULL;
	struct claim_request request = {
		.key = key,
		.while_wanted = true,
		.device_count = 1,
		.device = { { .card = &f->node->card[0],
			      .terms = { .has_memory = true,
					 .memory_bytes = 512 * MIB,
					 .has_cores = true,
					 .cores_pct = 2,
					 .has_limit = true,
					 .limit_pct = 2 } } },
	};
	if (claims_allocate(f->node->claims, &request, &claim, &err) < 0)
		fail_msg("%s", err.text);
	return claim;
}

static void test_cores(void **state)
{
	struct fixture *f = *state;
	struct claim *claim;
	assert_non_null(strstr(cores_say(f, "u-1", "2", "2", CARD "-0", &claim),
			       "has 2 device(s), starting with '" OTHER
			       "-3': allotd: no claim has these devices"));
	struct claim *init = make_cores(f, POD_KEY "u-1/init/" CARD "-0");
	assert_string_equal(cores_say(f, "u-1", "2", "2", CARD "-0", &claim), "");
	assert_ptr_equal(claim, init);
	struct claim *own = make_cores(f, POD_KEY "u-1/main/" CARD "-0");
	assert_string_equal(cores_say(f, "u-1", "2", "2", CARD "-0", &claim), "");
	assert_ptr_equal(claim, own);
	/* Another pod with the same request holds it; a pod with a different request can't be meant. */
	assert_string_equal(cores_say(f, "u-2", "2", "2", CARD "-0", &claim), "");
	assert_non_null(claim);
	assert_non_null(
		strstr(cores_say(f, "u-2", "2", "3", CARD "-0", &claim),
		       "the container asks for 2 x/core and 3 x/memory; allotd: claim 'pod/u-1/"));
	assert_non_null(
		strstr(cores_say(f, "u-2", "3", "2", CARD "-0", &claim), "asks for 3 x/core"));
	assert_non_null(strstr(cores_say(f, "u-2", "2", "x", CARD "-0", &claim), "x/memory: 'x'"));
}

/* ---- asked of a kubelet ---- */

static uint8_t answer[512];
static atomic_size_t answer_size;

static void list(void *data, struct grpc_call *call, const uint8_t *message, size_t size)
{
	served_reply(call, (const char *)answer, atomic_load(&answer_size));
}

static const struct grpc_method method = { "/v1.PodResourcesLister/List", list };

/* One container, whose devices are listed one by one; the other resource is not ours. */
static void pack_answer(void)
{
	char one[] = CARD "-0", other[] = CARD "-1", strange[] = "x", resource[] = RESOURCE;
	char foreign[] = "other.x/y", main_name[] = "main", train[] = "train", team[] = "team";
	char *one_id[] = { one }, *other_id[] = { other }, *strange_id[] = { strange };
	Podresources__ContainerDevices a = PODRESOURCES__CONTAINER_DEVICES__INIT, b = a, c = a;
	Podresources__ContainerDevices *devices[] = { &a, &b, &c };
	Podresources__ContainerResources container = PODRESOURCES__CONTAINER_RESOURCES__INIT;
	Podresources__ContainerResources *containers[] = { &container };
	Podresources__PodResources pod = PODRESOURCES__POD_RESOURCES__INIT;
	Podresources__PodResources *pods[] = { &pod };
	Podresources__ListResponse all = PODRESOURCES__LIST_RESPONSE__INIT;
	a.resource_name = b.resource_name = resource;
	c.resource_name = foreign;
	a.device_ids = one_id;
	b.device_ids = other_id;
	c.device_ids = strange_id;
	a.n_device_ids = b.n_device_ids = c.n_device_ids = 1;
	container.name = main_name;
	container.devices = devices;
	container.n_devices = 3;
	pod.name = train;
	pod.namespace_ = team;
	pod.containers = containers;
	pod.n_containers = 1;
	all.pod_resources = pods;
	all.n_pod_resources = 1;
	assert_true(podresources__list_response__get_packed_size(&all) <= sizeof(answer));
	atomic_store(&answer_size, podresources__list_response__pack(&all, answer));
}

/* Reads the kubelet's list again, and returns the result. */
static struct plugin_figures reconcile_again(struct fixture *f)
{
	struct plugin *p = f->node->plugin;
	uint64_t before = pod_resources_answers(p->pods);
	struct plugin_figures figures;
	for (unsigned i = 0; i < 20000 && pod_resources_answers(p->pods) == before; i++) {
		pod_resources_request(p->pods);
		usleep(1000);
	}
	assert_true(pod_resources_answers(p->pods) > before);
	reconcile_run(p->reconciler, p);
	assert_true(plugin_figures(p, &figures));
	return figures;
}

static void test_a_difference_that_stays(void **state)
{
	struct fixture *f = *state;
	struct config *config = &f->node->config;
	struct error err = { 0 };
	char path[80];
	snprintf(path, sizeof(path), "%s/pods.sock", f->dir);
	config->is_kube_plugin = true;
	config->kube_slices = 4;
	strcpy(config->kube_resource, RESOURCE);
	strcpy(config->kube_plugin_dir, "/nowhere");
	strcpy(config->kube_pod_resources, path);
	f->node->is_private = false;
	if (plugin_start(f->node, &f->node->plugin, &err) < 0)
		fail_msg("%s", err.text);
	pack_answer();
	served_start(path, &method);
	/* A first difference may be momentary; a second one is an error, and is logged once. */
	assert_int_equal(reconcile_again(f).disagreements, 0);
	assert_int_equal(reconcile_again(f).disagreements, 1);
	struct plugin_figures figures = reconcile_again(f);
	assert_int_equal(figures.disagreements, 1);
	assert_int_equal(figures.disagreements_ever, 1);
	/* The claim is there: over. */
	make_claim(f, ALLOCATE_KEY CARD "-0", 0, 0, 1);
	figures = reconcile_again(f);
	assert_int_equal(figures.disagreements, 0);
	assert_int_equal(figures.disagreements_ever, 1);
	struct claim_holder who;
	struct claim *claim = claims_first(f->node->claims);
	assert_true(claim_holders_find(f->node->claim_holders, claim, &who));
	assert_string_equal(who.pod_namespace, "team");
	assert_string_equal(who.pod, "train");
	assert_string_equal(who.container, "main");
	/* The pod is gone by the kubelet: no difference, as long as nothing runs in the claim. */
	atomic_store(&answer_size, 0);
	reconcile_again(f);
	assert_int_equal(reconcile_again(f).disagreements, 0);
	assert_false(claim_holders_find(f->node->claim_holders, claim, &who));
	struct client c;
	client_register(f, client_connect(claim->tenant), 0, &c);
	reconcile_again(f);
	assert_int_equal(reconcile_again(f).disagreements, 1);
	assert_int_equal(claims_count(f->node->claims), 1);
	client_close(&c);
	served_end();
	f->node->is_private = true;
}

int main(void)
{
#define WITH_DAEMON(test) cmocka_unit_test_setup_teardown(test, fixture_setup, fixture_teardown)
	const struct CMUnitTest tests[] = {
		WITH_DAEMON(test_slices),
		WITH_DAEMON(test_shares),
		WITH_DAEMON(test_cores),
		WITH_DAEMON(test_a_difference_that_stays),
	};
	return cmocka_run_group_tests_name("reconcile", tests, NULL, NULL);
}
