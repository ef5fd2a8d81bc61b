#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "kube/hami/find_allocating.h"

#define NOW 1787306400
#define MAX_PODS 4

/* A node's pods, as a test describes them. */
struct scene {
	struct kube_pod *pod[MAX_PODS];
	struct node_lock lock;
	struct choice_query q;
	const char *id[8];
};

static void add_pod(struct scene *s, const char *name, const char *node, const char *phase,
		    int64_t bind_s, const char *to_allocate)
{
	json_auto_t *object = json_pack("{s:{s:s,s:s,s:s,s:s,s:{s:s,s:s,s:s,s:o}},s:{s:s,s:[{s:s}],"
					"s:[{s:s},{s:s}]},s:{s:s}}",
					"metadata", "name", name, "namespace", "ns", "uid", name,
					"resourceVersion", "1", "annotations", "hami.io/bind-phase",
					phase, "hami.io/vgpu-node", node,
					"hami.io/vgpu-devices-to-allocate", to_allocate,
					"hami.io/bind-time",
					json_sprintf("%lld", (long long)bind_s), "spec", "nodeName",
					node, "initContainers", "name", "init", "containers",
					"name", "one", "name", "two", "status", "phase", "Pending");
	assert_non_null(object);
	assert_int_equal(pod_read(object, &s->pod[s->q.pod_count++], NULL), 0);
	s->q.pod = (const struct kube_pod *const *)s->pod;
}

static int setup(void **state)
{
	static struct scene scene;
	scene = (struct scene){ .id = { "GPU-a-3" } };
	scene.q = (struct choice_query){ .node = "n1", .now_s = NOW, .id = scene.id, .id_count = 1 };
	*state = &scene;
	return 0;
}

static int teardown(void **state)
{
	struct scene *s = *state;
	for (size_t i = 0; i < s->q.pod_count; i++)
		pod_free(s->pod[i]);
	return 0;
}

static void lock(struct scene *s, int64_t since_s, const char *pod)
{
	s->lock = (struct node_lock){ .since_s = since_s, .pod_namespace = "ns" };
	strcpy(s->lock.pod, pod);
	s->q.lock = &s->lock;
}

static void refused(struct scene *s, int code, const char *one, const char *other)
{
	struct choice c;
	struct error err;
	int r = choice_make(&s->q, &c, &err);
	if (r != -code || !strstr(err.text, one) || !strstr(err.text, other))
		fail_msg("%d: %s", r, err.text);
}

static void chosen(struct scene *s, const char *pod, size_t container, size_t shares, bool agree)
{
	struct choice c;
	struct error err = { 0 };
	int r = choice_make(&s->q, &c, &err);
	if (r < 0)
		fail_msg("%d: %s", r, err.text);
	assert_string_equal(c.pod->name, pod);
	assert_int_equal(c.container, container);
	assert_int_equal(c.share_count, shares);
	assert_int_equal(c.cards_agree, agree);
	shares_free(&c.shares);
}

static void test_owner_of_the_lock(void **state)
{
	struct scene *s = *state;
	add_pod(s, "first", "n1", "allocating", NOW - 5, ";GPU-a,NVIDIA,1,2:;;");
	add_pod(s, "owner", "n1", "allocating", NOW - 1, ";;GPU-a,NVIDIA,1,2:;");
	lock(s, NOW - 2, "owner");
	chosen(s, "owner", 2, 1, true);
}

/* Its shares go one container after the other, init containers first. */
static void test_containers_in_order(void **state)
{
	struct scene *s = *state;
	add_pod(s, "p", "n1", "allocating", NOW, "GPU-b,NVIDIA,1,2:;GPU-a,NVIDIA,1,2:;;");
	chosen(s, "p", 0, 1, false);
}

/* HAMi's scheduler up to v2.8 leaves init containers out. */
static void test_without_init_containers(void **state)
{
	struct scene *s = *state;
	add_pod(s, "p", "n1", "allocating", NOW, ";GPU-a,NVIDIA,1,2:;");
	chosen(s, "p", 2, 1, true);
}

static void test_cards_of_several_ids(void **state)
{
	struct scene *s = *state;
	add_pod(s, "p", "n1", "allocating", NOW,
		";GPU-a,NVIDIA,1,2:GPU-b,NVIDIA,1,2:GPU-a,NVIDIA,3,4:;;");
	s->id[1] = "GPU-a-0";
	s->id[2] = "GPU-b-9";
	s->q.id_count = 3;
	chosen(s, "p", 1, 3, true);
	s->id[2] = "GPU-bb-9";
	chosen(s, "p", 1, 3, false);
	s->id[2] = "GPU-b-";
	chosen(s, "p", 1, 3, false);
}

static void test_only_one_is_being_bound(void **state)
{
	struct scene *s = *state;
	add_pod(s, "done", "n1", "success", NOW - 5, ";;");
	add_pod(s, "elsewhere", "n2", "allocating", NOW - 5, "GPU-a,NVIDIA,1,2:;");
	add_pod(s, "late", "n1", "allocating", NOW - 301, "GPU-a,NVIDIA,1,2:;");
	add_pod(s, "this", "n1", "allocating", NOW - 299, "GPU-a,NVIDIA,1,2:;");
	chosen(s, "this", 0, 1, true);
	lock(s, NOW - 301, "elsewhere"); /* expired */
	chosen(s, "this", 0, 1, true);
	lock(s, NOW, ""); /* of nobody */
	chosen(s, "this", 0, 1, true);
}

static void test_two_and_no_lock(void **state)
{
	struct scene *s = *state;
	add_pod(s, "a", "n1", "allocating", NOW, "GPU-a,NVIDIA,1,2:;");
	add_pod(s, "b", "n1", "allocating", NOW, "GPU-a,NVIDIA,1,2:;");
	refused(s, EBUSY, "pods ns/a and ns/b are both", "GPU-a-3");
}

static void test_nobody(void **state)
{
	struct scene *s = *state;
	refused(s, EAGAIN, "no pod is being bound to node n1", "GPU-a-3");
	add_pod(s, "p", "n1", "success", NOW, ";;");
	refused(s, EAGAIN, "no pod is being bound", "GPU-a-3");
	lock(s, NOW, "q");
	refused(s, EAGAIN, "locked by pod ns/q, which the API server has not shown to allotd yet",
		"GPU-a-3");
	lock(s, NOW, "p");
	refused(s, EAGAIN, "pod ns/p holds the lock of node n1", "bind-phase is not 'allocating'");
}

static void test_too_late(void **state)
{
	struct scene *s = *state;
	add_pod(s, "p", "n1", "allocating", NOW - 301, "GPU-a,NVIDIA,1,2:;");
	refused(s, ETIMEDOUT, "pod ns/p: hami.io/bind-time is 301 s ago", "GPU-a-3");
	lock(s, NOW, "p");
	refused(s, ETIMEDOUT, "pod ns/p: hami.io/bind-time is 301 s ago", "may take 300 s");
}

static void test_lock_of_another_node(void **state)
{
	struct scene *s = *state;
	add_pod(s, "p", "n2", "allocating", NOW, "GPU-a,NVIDIA,1,2:;");
	lock(s, NOW, "p");
	refused(s, EINVAL, "locked by pod ns/p, but that pod is on node n2", "GPU-a-3");
}

/* Its lock may have gone to another pod, which the watch of the node does not show yet. */
static void test_lock_of_a_pod_that_ends(void **state)
{
	struct scene *s = *state;
	add_pod(s, "p", "n1", "allocating", NOW, "GPU-a,NVIDIA,1,2:;");
	s->pod[0]->is_terminating = true;
	lock(s, NOW, "p");
	refused(s, EBUSY, "locked by pod ns/p. The locking pod has ended or is ending", "GPU-a-3");
}

static bool is_first(void *data, const struct kube_pod *pod, size_t container)
{
	assert_ptr_equal(data, pod);
	return container == 0;
}

/* The call is for the next container, which may ask for more, and is not compared with the first one's shares. */
static void test_given_and_not_seen_yet(void **state)
{
	struct scene *s = *state;
	add_pod(s, "p", "n1", "allocating", NOW,
		"GPU-a,NVIDIA,1,2:;GPU-a,NVIDIA,1,2:GPU-b,NVIDIA,1,2:;;");
	s->id[1] = "GPU-b-0";
	s->q.id_count = 2;
	s->q.has_shares = is_first;
	s->q.data = s->pod[0];
	refused(s, EAGAIN, "still lists the GPU shares that container init has already",
		"GPU-a-3, GPU-b-0");
	s->q.pod_count = 0;
	pod_free(s->pod[0]);
	add_pod(s, "p", "n1", "allocating", NOW, ";GPU-a,NVIDIA,1,2:GPU-b,NVIDIA,1,2:;;");
	s->q.data = s->pod[0];
	chosen(s, "p", 1, 2, true);
}

static void test_disagreement(void **state)
{
	struct scene *s = *state;
	add_pod(s, "p", "n1", "allocating", NOW, ";GPU-a,NVIDIA,1,2:GPU-b,NVIDIA,1,2:;;");
	refused(s, EINVAL,
		"pod ns/p: hami.io/vgpu-devices-to-allocate has 2 GPU shares for container one",
		"the kubelet asks for 1 (GPU-a-3)");
}

static void test_broken_annotation(void **state)
{
	struct scene *s = *state;
	add_pod(s, "p", "n1", "allocating", NOW, "GPU-a,NVIDIA,1;");
	refused(s, EINVAL, "pod ns/p: hami.io/vgpu-devices-to-allocate: container 0: share 0",
		"3 fields");
}

static void test_more_than_the_pod_has(void **state)
{
	struct scene *s = *state;
	add_pod(s, "p", "n1", "allocating", NOW, ";;;GPU-a,NVIDIA,1,2:;");
	refused(s, EINVAL, "has GPU shares for container number 4", "the pod has only 3 containers");
}

#define IN_SCENE(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		IN_SCENE(test_owner_of_the_lock),
		IN_SCENE(test_containers_in_order),
		IN_SCENE(test_without_init_containers),
		IN_SCENE(test_cards_of_several_ids),
		IN_SCENE(test_only_one_is_being_bound),
		IN_SCENE(test_two_and_no_lock),
		IN_SCENE(test_nobody),
		IN_SCENE(test_too_late),
		IN_SCENE(test_lock_of_another_node),
		IN_SCENE(test_lock_of_a_pod_that_ends),
		IN_SCENE(test_given_and_not_seen_yet),
		IN_SCENE(test_disagreement),
		IN_SCENE(test_broken_annotation),
		IN_SCENE(test_more_than_the_pod_has),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
